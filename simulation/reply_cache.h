// Copies of replies whose clients already work on something else.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "algorithms/core/message.h"

namespace gradwire {

// Memory that is handed out in pieces and taken back all at once.
class Arena {
 public:
  // Returns `bytes` of memory, aligned for any number.
  std::byte* take(std::size_t bytes) {
    bytes = (bytes + kAlign - 1) / kAlign * kAlign;
    while (chunk_ < chunks_.size() && used_ + bytes > chunks_[chunk_].size) ++chunk_, used_ = 0;
    if (chunk_ == chunks_.size()) {
      const std::size_t size = std::max(bytes, kChunkBytes);
      chunks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    }
    std::byte* const piece = chunks_[chunk_].bytes.get() + used_;
    used_ += bytes;
    return piece;
  }
  template <class T>
  std::span<T> copy(std::span<const T> from) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlign);
    if (from.empty()) return {};
    std::byte* const to = take(from.size_bytes());
    std::memcpy(to, from.data(), from.size_bytes());
    return {reinterpret_cast<T*>(to), from.size()};
  }
  // Takes all memory back. Keeps what was used since the last call for new pieces, and frees the rest.
  void clear() {
    if (chunk_ + 1 < chunks_.size()) chunks_.resize(chunk_ + 1);
    chunk_ = used_ = 0;
  }

 private:
  static constexpr std::size_t kAlign = 8, kChunkBytes = 256 << 10;
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size;
  };
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0, used_ = 0;  // begin of the next piece
};

// Copies everything that the part and its successors view into the arena.
template <class Real>
void keep_values(Payload<Real>& part, Arena& arena) {
  part.indices = arena.copy(part.indices);
  part.values = arena.copy(part.values);
  if (part.key != nullptr) part.key = arena.copy(std::span<const RngKey>(part.key, 1)).data();
  if (part.next == nullptr) return;
  Payload<Real> next = *part.next;
  keep_values(next, arena);
  part.next = arena.copy(std::span<const Payload<Real>>(&next, 1)).data();
}

// Returns a copy of the reply that views only the arena.
template <class Real>
UplinkView<Real> keep_reply(const Uplink<Real>& up, Arena& arena) {
  Parts<Real> parts;
  for (Payload<Real> part : up.parts) {
    keep_values(part, arena);
    parts.push_back(part);
  }
  return {up, arena.copy(std::span<const Payload<Real>>(parts))};
}

// Replies of one leaf (tree_sum.h), kept as they arrive. Each dense reply is added to the first one, in
// order, so sums along the tree keep their bits. After a missing reply or one that is not dense, all are kept
// unchanged.
template <class Real>
class LeafOfReplies {
 public:
  void begin(bool adds) {
    adds_ = adds;
    count_ = 0;
    empty_ = {};
  }
  void leave_out() { adds_ = false; }
  UplinkView<Real> keep(const Uplink<Real>& up, Arena& arena) {
    adds_ = adds_ && fits(up.parts);
    if (!adds_) return keep_reply(up, arena);
    if (count_ == 0) return open(up, arena);
    if (empty_.empty()) empty_ = arena.copy(std::span<const Payload<Real>>(nothing_like<Real>(up.parts)));
    for (std::size_t k = 0; k < count_; ++k) {
      Real* const sum = sums_[k].data();
      const View<Real> v = up.parts[k].values;
      for (std::size_t j = 0; j < v.size(); ++j) sum[j] += v[j];
    }
    return {up, empty_};
  }

 private:
  bool fits(const Parts<Real>& parts) const {
    for (std::size_t k = 0; k < parts.size(); ++k)
      if (parts[k].shape != Shape::kDense || parts[k].next != nullptr ||
          (count_ > 0 && parts[k].values.size() != sums_[k].size()))
        return false;
    return count_ == 0 || count_ == parts.size();
  }
  // Uses the vectors of the first reply as the sums.
  UplinkView<Real> open(const Uplink<Real>& up, Arena& arena) {
    Parts<Real> parts;
    for (const Payload<Real>& part : up.parts) {
      sums_[parts.size()] = arena.copy(part.values);
      parts.push_back(Payload<Real>::dense(sums_[parts.size()]));
    }
    count_ = parts.size();
    return {up, arena.copy(std::span<const Payload<Real>>(parts))};
  }

  bool adds_ = false;
  std::size_t count_ = 0;  // number of parts; 0 if nothing was added
  std::array<Out<Real>, kMaxParts> sums_;
  std::span<const Payload<Real>> empty_;  // parts of the replies that were added
};

}  // namespace gradwire
