#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "compressors/payload.h"
#include "engine/oracle.h"

namespace gradwire {

// Thrown by an oracle that was told to stop.
class OracleStopped : public std::runtime_error {
 public:
  OracleStopped() : std::runtime_error("the computation was stopped") {}
};

// The user's oracle, which another thread can stop: one step of a method may ask for thousands of gradients.
template <class Real>
class StoppableOracle final : public Oracle<Real> {
 public:
  explicit StoppableOracle(std::unique_ptr<Oracle<Real>> inner) : inner_(std::move(inner)) {}

  // From now on every call throws OracleStopped.
  void stop() { stopped_ = true; }

  std::size_t dim() const override { return inner_->dim(); }
  std::size_t sample_count() const override { return inner_->sample_count(); }
  Real loss_and_gradient(View<Real> x, Batch batch, Out<Real> gradient) override {
    return go_on().loss_and_gradient(x, batch, gradient);
  }
  bool hessian(View<Real> x, Out<Real> upper) override { return go_on().hessian(x, upper); }
  std::optional<Score> score(View<Real> x) override { return go_on().score(x); }

 private:
  Oracle<Real>& go_on() const {
    if (stopped_.load(std::memory_order_relaxed)) throw OracleStopped();
    return *inner_;
  }

  const std::unique_ptr<Oracle<Real>> inner_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace gradwire
