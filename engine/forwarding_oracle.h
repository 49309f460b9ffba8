// An oracle around another: everything it is asked for, it asks of the other. What wraps an oracle derives
// from this and overrides what it changes, so that no power is lost on the way.
#pragma once

#include <optional>

#include "engine/oracle.h"

namespace gradwire {

// Self derives from this and has `Oracle<Real>& inner() const`, to which the next call goes; it may throw.
// What Base adds to Oracle stays to be written.
template <class Real, class Self, class Base = Oracle<Real>>
class ForwardingOracle : public Base {
 public:
  using typename Oracle<Real>::View;
  using typename Oracle<Real>::Out;

  std::size_t dim() const override { return inner().dim(); }
  std::size_t sample_count() const override { return inner().sample_count(); }
  Real loss_and_gradient(View x, Batch batch, Out gradient) override {
    return inner().loss_and_gradient(x, batch, gradient);
  }
  bool hessian(View x, Out upper) override { return inner().hessian(x, upper); }
  std::optional<Score> score(View x) override { return inner().score(x); }

  std::optional<Real> compute(View x, Batch batch, Out gradient, const GradientTerms& terms) override {
    return inner().compute(x, batch, gradient, terms);
  }
  double cost(const Coordinates& wanted) const override { return inner().cost(wanted); }
  Real loss(View x, Batch batch) override { return inner().loss(x, batch); }
  Directional<Real> directional(View x, View v, Batch batch) override {
    return inner().directional(x, v, batch);
  }
  TwoLosses<Real> two_gradients(View x, View y, Batch batch, Out at_x, Out at_y) override {
    return inner().two_gradients(x, y, batch, at_x, at_y);
  }
  void sample_gradients(View x, Batch batch, Out buffer, const TakeSample<Real>& take) override {
    inner().sample_gradients(x, batch, buffer, take);
  }
  Real clipped_gradient(View x, Batch batch, double norm_bound, Out gradient) override {
    return inner().clipped_gradient(x, batch, norm_bound, gradient);
  }

 private:
  Oracle<Real>& inner() const { return static_cast<const Self&>(*this).inner(); }
};

}  // namespace gradwire
