// The sum of the replies of several clients to one request, as apply() of a method that adds_replies takes it
// in their place.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/support/message.h"
#include "compressors/payload.h"

namespace gradwire {

template <class Real>
class ReplySum {
 public:
  // Forgets what was added; keeps its memory.
  void clear() { covers_.clear(); }

  // To be called in the order of clients: then the same replies give the same bits. Returns false and adds
  // nothing when the reply differs from the first in its request or its parts, or reports an evaluation.
  bool add(const Uplink<Real>& up) {
    if (covers_.empty()) begin(up);
    if (!fits(up)) return false;
    for (std::size_t k = 0; k < up.parts.size(); ++k) {
      if (up.parts[k].shape == Shape::kNothing) continue;
      if (sums_[k].empty()) sums_[k].assign(up.parts[k].dim, Real(0));
      add_decoded<Real>(up.parts[k], Real(1), sums_[k]);
    }
    sum_.loss += up.loss;
    sum_.grad_calls += up.grad_calls;
    covers_.push_back(up.client);
    return true;
  }

  std::span<const ClientId> covers() const { return covers_; }
  // The sum, under the first client's number; its parts view this object. REQUIRES: something was added.
  Uplink<Real> sum() const {
    Uplink<Real> up = sum_;
    up.parts = {};
    for (std::size_t k = 0; k < sum_.parts.size(); ++k)
      up.parts.push_back(sums_[k].empty() ? Payload<Real>::nothing(sum_.parts[k].dim)
                                          : Payload<Real>::dense(sums_[k]));
    return up;
  }
  // The sum of finite numbers may overflow.
  bool is_finite() const {
    for (std::size_t k = 0; k < sum_.parts.size(); ++k)
      for (const Real value : sums_[k])
        if (!std::isfinite(value)) return false;
    return std::isfinite(sum_.loss);
  }

 private:
  void begin(const Uplink<Real>& up) {
    sum_ = up;
    sum_.loss = 0;
    sum_.grad_calls = 0;
    for (Vec<Real>& sum : sums_) sum.clear();
  }
  bool fits(const Uplink<Real>& up) const {
    if (up.correct != 0 || up.tested != 0 || up.ticket != sum_.ticket || up.round != sum_.round ||
        up.parts.size() != sum_.parts.size() || (!covers_.empty() && up.client <= covers_.back()))
      return false;
    for (std::size_t k = 0; k < up.parts.size(); ++k)
      if (up.parts[k].dim != sum_.parts[k].dim) return false;
    return true;
  }

  Uplink<Real> sum_;                       // of its parts, only the dims are used
  std::array<Vec<Real>, kMaxParts> sums_;  // empty: no reply had anything there
  std::vector<ClientId> covers_;
};

}  // namespace gradwire
