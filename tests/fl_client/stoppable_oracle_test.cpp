// Another thread can stop a long gradient in its middle, and the next gradient is unaffected.
#include "fl_client/stoppable_oracle.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

namespace gradwire {
namespace {

// An oracle whose gradient of all samples only ends when it is stopped. The gradient of a batch ends at once.
class Endless final : public Oracle<double> {
 public:
  std::size_t dim() const override { return 2; }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(std::span<const double> x, Batch, std::span<double> gradient) override {
    gradient[0] = x[0];
    gradient[1] = 3;
    return 5;
  }
  std::optional<double> compute(std::span<const double> x, Batch batch, std::span<double> gradient,
                                const GradientOptions& options) override {
    if (!batch.empty()) return Oracle::compute(x, batch, gradient, options);
    begun = true;
    while (!stopped(options.stop)) std::this_thread::yield();
    return std::nullopt;
  }
  std::atomic<bool> begun = false;
};

TEST(StoppableOracle, StopsAGradientInItsMiddleAndComputesTheNext) {
  auto inner = std::make_unique<Endless>();
  Endless& endless = *inner;
  StoppableOracle<double> oracle(std::move(inner));
  const std::vector<double> x = {1, 2};
  const std::vector<std::uint32_t> batch = {0};
  std::vector<double> gradient(2);
  std::thread other([&] {
    while (!endless.begun) std::this_thread::yield();
    oracle.stop();
  });
  EXPECT_THROW(oracle.loss_and_gradient(x, {}, gradient), OracleStopped);
  other.join();
  EXPECT_THROW(oracle.loss_and_gradient(x, batch, gradient), OracleStopped) << "until it may continue";
  EXPECT_THROW(oracle.score(x), OracleStopped);
  oracle.resume();
  EXPECT_EQ(oracle.loss_and_gradient(x, batch, gradient), 5);
  EXPECT_EQ(gradient, (std::vector<double>{1, 3}));
}

TEST(StoppableOracle, StaysStoppedOnceItsTokenAsksForIt) {
  std::stop_source source;
  auto inner = std::make_unique<Endless>();
  Endless& endless = *inner;
  StoppableOracle<double> oracle(std::move(inner), source.get_token());
  const std::vector<double> x = {1, 2};
  const std::vector<std::uint32_t> batch = {0};
  std::vector<double> gradient(2);
  EXPECT_EQ(oracle.loss_and_gradient(x, batch, gradient), 5);
  std::thread other([&] {
    while (!endless.begun) std::this_thread::yield();
    source.request_stop();
  });
  EXPECT_THROW(oracle.loss_and_gradient(x, {}, gradient), OracleStopped);
  other.join();
  oracle.resume();
  EXPECT_THROW(oracle.loss_and_gradient(x, batch, gradient), OracleStopped);
}

}  // namespace
}  // namespace gradwire
