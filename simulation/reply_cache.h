// Copies of replies whose clients already work on something else.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "algorithms/core/message.h"
#include "compressors/payload_copy.h"

namespace gradwire {

// Returns a copy of the reply that views only the arena.
template <class Real>
UplinkView<Real> keep_reply(const Uplink<Real>& up, Arena& arena) {
  Parts<Real> parts;
  for (Payload<Real> part : up.parts) {
    copy_payload(part, arena);
    parts.push_back(part);
  }
  return {up, arena.copy(std::span<const Payload<Real>>(parts))};
}

// Replies of one leaf (tree_sum.h), kept as they arrive. Each dense reply is added to the first one, in
// order, so sums along the tree keep their bits. After a missing reply or one that is not dense, all later
// replies are kept unchanged.
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
