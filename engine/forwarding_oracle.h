// An oracle that forwards all calls to another one. Wrappers derive from it and override what they change, so
// they keep all optional operations.
#pragma once

#include <optional>

#include "gradwire/oracle.h"

namespace gradwire {

// Self derives from this class and has `Oracle<Real>& inner() const`, which returns the target of the next
// call and may throw. Self also implements the pure functions that Base adds to Oracle.
template <class Real, class Self, class Base = Oracle<Real>>
class ForwardingOracle : public Base {
 public:
  using typename Oracle<Real>::Reals;
  using typename Oracle<Real>::RealsOut;

  std::size_t dim() const override { return inner().dim(); }
  std::size_t sample_count() const override { return inner().sample_count(); }
  Real loss_and_gradient(Reals x, Batch batch, RealsOut gradient) override {
    return inner().loss_and_gradient(x, batch, gradient);
  }
  bool hessian(Reals x, RealsOut upper) override { return inner().hessian(x, upper); }
  std::optional<Score> score(Reals x) override { return inner().score(x); }

  bool share_work(const WorkSharing& sharing) override { return inner().share_work(sharing); }
  std::optional<Real> compute(Reals x, Batch batch, RealsOut gradient,
                              const GradientOptions& options) override {
    return inner().compute(x, batch, gradient, options);
  }
  double cost(const Coordinates& wanted) const override { return inner().cost(wanted); }
  Real loss(Reals x, Batch batch) override { return inner().loss(x, batch); }
  Directional<Real> directional(Reals x, Reals v, Batch batch) override {
    return inner().directional(x, v, batch);
  }
  TwoLosses<Real> two_gradients(Reals x, Reals y, Batch batch, RealsOut at_x, RealsOut at_y) override {
    return inner().two_gradients(x, y, batch, at_x, at_y);
  }
  std::optional<Real> train(RealsOut y, const LocalTraining& training) override {
    return inner().train(y, training);
  }
  void sample_gradients(Reals x, Batch batch, RealsOut buffer, const TakeSample<Real>& take) override {
    inner().sample_gradients(x, batch, buffer, take);
  }
  Real clipped_gradient(Reals x, Batch batch, double norm_bound, RealsOut gradient) override {
    return inner().clipped_gradient(x, batch, norm_bound, gradient);
  }

 private:
  Oracle<Real>& inner() const { return static_cast<const Self&>(*this).inner(); }
};

}  // namespace gradwire
