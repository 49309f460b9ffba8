#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <utility>

#include "compressors/payload.h"
#include "engine/forwarding_oracle.h"

namespace gradwire {

// Thrown by an oracle that was stopped.
class OracleStopped : public std::runtime_error {
 public:
  OracleStopped() : std::runtime_error("the computation was stopped") {}
};

// The user's oracle, which another thread can stop. One step of an algorithm may ask for thousands of
// gradients, and one gradient may take long.
template <class Real>
class StoppableOracle final : public ForwardingOracle<Real, StoppableOracle<Real>> {
 public:
  // `for_good` stops the oracle once and for all.
  explicit StoppableOracle(std::unique_ptr<Oracle<Real>> inner, std::stop_token for_good = {})
      : inner_(std::move(inner)), for_good_(std::move(for_good)), on_stop_(for_good_, Stop{stopped_}) {}

  // Makes every call throw OracleStopped until resume(). A call in progress also throws if the inner oracle
  // can stop.
  void stop() { stopped_ = true; }
  void resume() {
    stopped_ = false;
    if (for_good_.stop_requested()) stop();
  }

  Real loss_and_gradient(View<Real> x, Batch batch, Out<Real> gradient) override {
    const std::optional<Real> loss = inner().compute(x, batch, gradient, {.stop = &stopped_});
    if (!loss) throw OracleStopped();
    return *loss;
  }
  // Polls the caller's stop token if there is one; stop() then takes effect at the next call.
  std::optional<Real> compute(View<Real> x, Batch batch, Out<Real> gradient,
                              const GradientOptions& options) override {
    if (options.stop != nullptr) return inner().compute(x, batch, gradient, options);
    GradientOptions mine = options;
    mine.stop = &stopped_;
    const std::optional<Real> loss = inner().compute(x, batch, gradient, mine);
    if (!loss) throw OracleStopped();
    return loss;
  }

  std::optional<Real> train(Out<Real> y, const LocalTraining& training) override {
    const std::optional<Real> loss = inner().train(y, training);
    (void)inner();  // a stop during the training takes effect now
    return loss;
  }

  // Returns the inner oracle. Throws OracleStopped if stopped.
  Oracle<Real>& inner() const {
    if (stopped_.load(std::memory_order_relaxed)) throw OracleStopped();
    return *inner_;
  }

 private:
  const std::unique_ptr<Oracle<Real>> inner_;
  std::atomic<bool> stopped_ = false;
  const std::stop_token for_good_;
  struct Stop {
    std::atomic<bool>& stopped;
    void operator()() const noexcept { stopped = true; }
  };
  const std::stop_callback<Stop> on_stop_;  // last, because it uses stopped_
};

}  // namespace gradwire
