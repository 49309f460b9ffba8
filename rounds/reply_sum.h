// The sum of the replies of several clients to one request. If an algorithm has adds_replies, its apply()
// takes the sum in place of the replies.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/core/message.h"
#include "algorithms/core/tree_sum.h"
#include "compressors/payload.h"

namespace gradwire {

template <class Real>
class ReplySum {
 public:
  // Removes all replies but keeps the memory.
  void clear() { covers_.clear(); }

  // Adds a reply. Call it in ascending order of clients, so that the same replies give the same bits. Adds
  // nothing and returns false if the reply has another request or other dimensions than the first one, or if
  // it answers an evaluation.
  bool add(const UplinkView<Real>& up) {
    if (covers_.empty()) begin(up);
    if (!fits(up)) return false;
    for (std::size_t k = 0; k < up.parts.size(); ++k)
      for (const Payload<Real>* p = &up.parts[k]; p != nullptr; p = p->next) sums_[k].add(up.client, *p);
    head_.loss += up.loss;
    head_.grad_calls += up.grad_calls;
    covers_.push_back(up.client);
    return true;
  }

  std::span<const ClientId> covers() const { return covers_; }
  // Returns the sum under the first client's number. Its parts view this object. Call clear() before the next
  // add(). REQUIRES: at least one reply was added.
  Uplink<Real> sum() {
    Uplink<Real> up{head_, {}};
    for (std::size_t k = 0; k < parts_; ++k) up.parts.push_back(sums_[k].sum());
    return up;
  }

 private:
  // The sum of one part: first the dense replies along the tree, then the others, in the order of
  // add_scaled_by().
  struct PartSum {
    std::uint32_t dim = 0;
    TreeSum<Real> dense;
    Vec<Real> others;  // empty if there were none

    void begin(std::uint32_t d) {
      dim = d;
      dense.begin(d);
      others.clear();
    }
    void add(ClientId client, const Payload<Real>& p) {
      if (p.shape == Shape::kDense) return dense.add(client, Real(1), p.values.data());
      if (p.shape == Shape::kNothing) return;
      if (others.empty()) others.assign(dim, Real(0));
      add_link<Real>(p, Real(1), others, 0, dim);
    }
    Payload<Real> sum() {
      const View<Real> root = dense.sum();
      if (others.empty()) return root.empty() ? Payload<Real>::nothing(dim) : Payload<Real>::dense(root);
      if (!root.empty())
        for (std::size_t j = 0; j < dim; ++j) others[j] = root[j] + others[j];
      return Payload<Real>::dense(others);
    }
  };

  void begin(const UplinkView<Real>& up) {
    head_ = up;
    head_.loss = 0;
    head_.grad_calls = 0;
    parts_ = up.parts.size();
    for (std::size_t k = 0; k < up.parts.size(); ++k) sums_[k].begin(up.parts[k].dim);
  }
  bool fits(const UplinkView<Real>& up) const {
    if (up.correct != 0 || up.tested != 0 || up.request_id != head_.request_id || up.round != head_.round ||
        up.parts.size() != parts_ || (!covers_.empty() && up.client <= covers_.back()))
      return false;
    for (std::size_t k = 0; k < up.parts.size(); ++k)
      if (up.parts[k].dim != sums_[k].dim) return false;
    return true;
  }

  UplinkHeader head_;
  std::size_t parts_ = 0;
  std::array<PartSum, kMaxParts> sums_;
  std::vector<ClientId> covers_;
};

}  // namespace gradwire
