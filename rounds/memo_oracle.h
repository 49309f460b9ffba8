#pragma once

#include <cstring>
#include <optional>

#include "compressors/payload.h"
#include "engine/oracle.h"

namespace gradwire {

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
      std::memcpy(gradient.data(), gradient_.data(), gradient_.size() * sizeof(Real));
      return loss_;
    }
    return inner_->loss_and_gradient(x, batch, gradient);
  }

  // f_i(x); its gradient is gradient(). Not counted.
  Real evaluate(View<Real> x) {
    if (remembers(x)) return loss_;
    x_.assign(x.begin(), x.end());
    gradient_.resize(x.size());
    return loss_ = inner_->loss_and_gradient(x, {}, gradient_);
  }
  View<Real> gradient() const { return gradient_; }

  std::uint64_t grad_calls() const { return grad_calls_; }

  // Forgets the gradient and frees its memory.
  void forget() {
    Vec<Real>().swap(x_);
    Vec<Real>().swap(gradient_);
  }
  // From now on this wraps another oracle; the memory of the gradient is kept for the next gradient.
  void rebind(Oracle<Real>& inner) {
    inner_ = &inner;
    x_.clear();
  }

 private:
  bool remembers(View<Real> x) const {
    return !x_.empty() && x_.size() == x.size() &&
           std::memcmp(x_.data(), x.data(), x.size() * sizeof(Real)) == 0;
  }

  Oracle<Real>* inner_;
  std::uint64_t grad_calls_ = 0;
  Vec<Real> x_, gradient_;  // shape (d) once something was evaluated
  Real loss_ = 0;
};

}  // namespace gradwire
