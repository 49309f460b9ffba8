// Memory for many small copies that are freed together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace gradwire {

// Allocates from chunks, the first of 4 KiB and each next one twice as large, up to 256 KiB.
class Arena {
 public:
  // Returns `bytes` bytes, aligned for any number.
  std::byte* take(std::size_t bytes) {
    bytes = (bytes + kAlign - 1) / kAlign * kAlign;
    while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].size) ++chunk_, used_ = 0;
    if (chunk_ == chunks_.size()) {
      const std::size_t next = chunks_.empty() ? kFirstChunk : std::min(2 * chunks_.back().size, kLargeChunk);
      const std::size_t size = std::max(bytes, next);
      chunks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    }
    std::byte* const taken = chunks_[chunk_].bytes.get() + used_;
    used_ += bytes;
    return taken;
  }
  template <class T>
  std::span<T> copy(std::span<const T> from) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlign);
    if (from.empty()) return {};
    std::byte* const to = take(from.size_bytes());
    std::memcpy(to, from.data(), from.size_bytes());
    return {reinterpret_cast<T*>(to), from.size()};
  }
  // Invalidates all copies. Keeps the chunks in use for new copies, and frees the others.
  void clear() {
    if (chunk_ + 1 < chunks_.size()) chunks_.resize(chunk_ + 1);
    chunk_ = used_ = 0;
  }

 private:
  static constexpr std::size_t kAlign = 8, kFirstChunk = 4 << 10, kLargeChunk = 256 << 10;
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size;
  };
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0, used_ = 0;  // where the next copy begins
};

}  // namespace gradwire
