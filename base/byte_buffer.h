#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

namespace gradwire {

// A reusable work space. Its bytes are not initialised, so only the part that is written costs memory.
class ByteBuffer {
 public:
  // release_if_large() frees memory that is larger than this.
  static constexpr std::size_t kKeptBytes = 256 * 1024;

  // Returns `size` bytes with undefined contents. They are valid until the next call. A later call allocates
  // nothing if it needs at most `most` bytes and release_if_large() does not free them.
  std::span<std::byte> take(std::size_t size, std::size_t most = 0) {
    if (size > capacity_) {
      const std::size_t capacity = std::max(size, std::min(most, kKeptBytes));
      bytes_.reset();
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(capacity);
      capacity_ = capacity;
    }
    return {bytes_.get(), size};
  }
  void release_if_large() {
    if (capacity_ <= kKeptBytes) return;
    bytes_.reset();
    capacity_ = 0;
  }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
};

}  // namespace gradwire
