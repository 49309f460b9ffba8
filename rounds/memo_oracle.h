#pragma once

#include <cstring>
#include <optional>

#include "compressors/payload.h"
#include "engine/forwarding_oracle.h"

namespace gradwire {

// The loss and the gradient at x, as views.
template <class Real>
struct Evaluated {
  View<Real> x, gradient;  // empty if there is no result
  Real loss = 0;
};

// Wraps the user's oracle. Counts the per-sample gradients that the algorithm uses. Remembers the full
// gradient of the last evaluation, and returns it if the algorithm asks for the gradient at the same point.
template <class Real>
class MemoOracle final : public ForwardingOracle<Real, MemoOracle<Real>> {
 public:
  explicit MemoOracle(Oracle<Real>& inner) : inner_(&inner) {}

  Oracle<Real>& inner() const { return *inner_; }

  Real loss_and_gradient(View<Real> x, Batch batch, Out<Real> gradient) override {
    count(batch);
    return recall(x, batch, gradient) ? known_.loss : inner_->loss_and_gradient(x, batch, gradient);
  }
  std::optional<Real> compute(View<Real> x, Batch batch, Out<Real> gradient,
                              const GradientOptions& options) override {
    count(batch);
    if (options.paths.share < 1 || !recall(x, batch, gradient))
      return inner_->compute(x, batch, gradient, options);
    check_options(options, gradient.size());
    if (options.finished) options.finished({0, gradient.size()});
    return known_.loss;
  }
  TwoLosses<Real> two_gradients(View<Real> x, View<Real> y, Batch batch, Out<Real> at_x,
                                Out<Real> at_y) override {
    if (batch.empty() && (remembers(x) || remembers(y))) {
      const Real loss = loss_and_gradient(x, batch, at_x);
      return {loss, loss_and_gradient(y, batch, at_y)};
    }
    count(batch);
    count(batch);
    return inner_->two_gradients(x, y, batch, at_x, at_y);
  }
  Directional<Real> directional(View<Real> x, View<Real> v, Batch batch) override {
    count(batch);
    return inner_->directional(x, v, batch);
  }
  std::optional<Real> train(Out<Real> y, const LocalTraining& training) override {
    const std::optional<Real> loss = inner_->train(y, training);
    const std::uint64_t m = inner_->sample_count(), step = training.batch == 0 ? m : training.batch;
    if (loss) grad_calls_ += training.epochs > 0 ? training.epochs * m : training.steps * step;
    return loss;
  }
  void sample_gradients(View<Real> x, Batch batch, Out<Real> buffer, const TakeSample<Real>& take) override {
    count(batch);
    inner_->sample_gradients(x, batch, buffer, take);
  }
  Real clipped_gradient(View<Real> x, Batch batch, double norm_bound, Out<Real> gradient) override {
    count(batch);
    return inner_->clipped_gradient(x, batch, norm_bound, gradient);
  }

  // Returns f_i(x), and stores the gradient for gradient(). Does not count as gradient calls.
  Real evaluate(View<Real> x) {
    if (remembers(x)) return known_.loss;
    known_ = {};  // stays empty if the computation throws
    x_.assign(x.begin(), x.end());
    gradient_.resize(x.size());
    known_ = {x_, gradient_, inner_->loss_and_gradient(x, {}, gradient_)};
    return known_.loss;
  }
  View<Real> gradient() const { return known_.gradient; }
  // Returns the same f_i(x), bit for bit, without the gradient. Does not count as gradient calls.
  Real measure(View<Real> x) { return remembers(x) ? known_.loss : inner_->loss(x, {}); }

  std::uint64_t grad_calls() const { return grad_calls_; }

  // Forgets the gradient and frees its memory.
  void forget() {
    known_ = {};
    Vec<Real>().swap(x_);
    Vec<Real>().swap(gradient_);
  }
  // Replaces the wrapped oracle by `inner`, which must be the same function.
  void bind(Oracle<Real>& inner) { inner_ = &inner; }
  // Remembers a result that was computed elsewhere. The views must stay unchanged until the next call of
  // remember(), forget() or evaluate().
  void remember(const Evaluated<Real>& known) { known_ = known; }

 private:
  void count(Batch batch) { grad_calls_ += batch.empty() ? inner_->sample_count() : batch.size(); }
  // Writes the gradient and returns true if it is known.
  bool recall(View<Real> x, Batch batch, Out<Real> gradient) const {
    if (!batch.empty() || !remembers(x)) return false;
    std::memcpy(gradient.data(), known_.gradient.data(), gradient.size() * sizeof(Real));
    return true;
  }
  bool remembers(View<Real> x) const {
    return !known_.x.empty() && known_.x.size() == x.size() &&
           std::memcmp(known_.x.data(), x.data(), x.size() * sizeof(Real)) == 0;
  }

  Oracle<Real>* inner_;
  std::uint64_t grad_calls_ = 0;
  Evaluated<Real> known_;
  Vec<Real> x_, gradient_;  // memory of evaluate(); shape (d) after its first call
};

}  // namespace gradwire
