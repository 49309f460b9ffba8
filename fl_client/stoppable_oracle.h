#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "compressors/payload.h"
#include "engine/oracle.h"
#include "engine/stop_flag.h"

namespace gradwire {

// The user's oracle, which another thread can stop: one step of a method may ask for thousands of gradients,
// and one gradient may take long.
template <class Real>
class StoppableOracle final : public Oracle<Real> {
 public:
  explicit StoppableOracle(std::unique_ptr<Oracle<Real>> inner) : inner_(std::move(inner)) {}

  // Until go_on() the call that is being made, if it looks at its StopFlag, and every later one throw
  // ComputationStopped.
  void stop() { stopped_ = true; }
  void go_on() { stopped_ = false; }

  std::size_t dim() const override { return inner_->dim(); }
  std::size_t sample_count() const override { return inner_->sample_count(); }
  Real loss_and_gradient(View<Real> x, Batch batch, Out<Real> gradient) override {
    const StopFlag flag(stopped_);
    StopFlag::check();
    return inner_->loss_and_gradient(x, batch, gradient);
  }
  bool hessian(View<Real> x, Out<Real> upper) override {
    const StopFlag flag(stopped_);
    StopFlag::check();
    return inner_->hessian(x, upper);
  }
  std::optional<Score> score(View<Real> x) override {
    const StopFlag flag(stopped_);
    StopFlag::check();
    return inner_->score(x);
  }

 private:
  const std::unique_ptr<Oracle<Real>> inner_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace gradwire
