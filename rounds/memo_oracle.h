#pragma once

#include <cstring>
#include <optional>

#include "compressors/payload.h"
#include "engine/oracle.h"

namespace gradwire {

// What an evaluation found at x. Views.
template <class Real>
struct Evaluated {
  View<Real> x, gradient;  // empty: nothing
  Real loss = 0;
};

// An oracle around the user's: counts the method's per-sample gradients, and remembers the last full gradient
// that an evaluation computed, so that a gradient the method needs at that very point is not computed twice.
template <class Real>
class MemoOracle final : public Oracle<Real> {
 public:
  explicit MemoOracle(Oracle<Real>& inner) : inner_(&inner) {}

  std::size_t dim() const override { return inner_->dim(); }
  std::size_t sample_count() const override { return inner_->sample_count(); }
  bool hessian(View<Real> x, Out<Real> upper) override { return inner_->hessian(x, upper); }
  std::optional<Score> score(View<Real> x) override { return inner_->score(x); }

  Real loss_and_gradient(View<Real> x, Batch batch, Out<Real> gradient) override {
    grad_calls_ += batch.empty() ? inner_->sample_count() : batch.size();
    if (batch.empty() && remembers(x)) {
      std::memcpy(gradient.data(), known_.gradient.data(), gradient.size() * sizeof(Real));
      return known_.loss;
    }
    return inner_->loss_and_gradient(x, batch, gradient);
  }

  // f_i(x); its gradient is gradient(). Not counted.
  Real evaluate(View<Real> x) {
    if (remembers(x)) return known_.loss;
    known_ = {};  // also if the computation is stopped
    x_.assign(x.begin(), x.end());
    gradient_.resize(x.size());
    known_ = {x_, gradient_, inner_->loss_and_gradient(x, {}, gradient_)};
    return known_.loss;
  }
  View<Real> gradient() const { return known_.gradient; }

  std::uint64_t grad_calls() const { return grad_calls_; }

  // Forgets the gradient and frees its memory.
  void forget() {
    known_ = {};
    Vec<Real>().swap(x_);
    Vec<Real>().swap(gradient_);
  }
  // From now on this wraps `inner`, the same function in another place.
  void bind(Oracle<Real>& inner) { inner_ = &inner; }
  // Remembers what somebody else found; the views must stay as they are until the next call of this, of
  // forget() or of evaluate().
  void remember(const Evaluated<Real>& known) { known_ = known; }

 private:
  bool remembers(View<Real> x) const {
    return !known_.x.empty() && known_.x.size() == x.size() &&
           std::memcmp(known_.x.data(), x.data(), x.size() * sizeof(Real)) == 0;
  }

  Oracle<Real>* inner_;
  std::uint64_t grad_calls_ = 0;
  Evaluated<Real> known_;
  Vec<Real> x_, gradient_;  // of this oracle's own evaluations, shape (d) once there was one
};

}  // namespace gradwire
