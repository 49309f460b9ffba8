// The defaults of an oracle's optional operations, and wrappers of oracles.
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "engine/client_objectives.h"
#include "tests/engine/capability_checks.h"

namespace gradwire {
namespace {

// The function sum_j (x_j - a_kj)^4 / 4, averaged over samples k. It only implements the gradient, and counts
// its calls.
class Naive : public Oracle<double> {
 public:
  using View = std::span<const double>;
  using Out = std::span<double>;
  std::size_t dim() const override { return 7; }
  std::size_t sample_count() const override { return 5; }
  double loss_and_gradient(Reals x, Batch batch, RealsOut gradient) override {
    ++calls;
    std::fill(gradient.begin(), gradient.end(), 0.0);
    const std::size_t count = batch.empty() ? 5 : batch.size();
    double loss = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const auto sample = static_cast<double>(batch.empty() ? k : batch[k]);
      for (std::size_t j = 0; j < 7; ++j) {
        const double distance = x[j] - 0.1 * sample * static_cast<double>(j);
        loss += distance * distance * distance * distance / 4;
        gradient[j] += distance * distance * distance / static_cast<double>(count);
      }
    }
    return loss / static_cast<double>(count);
  }
  int calls = 0;
};

const std::vector<double> kPoint = {0.3, -1, 0.7, 2, -0.2, 0.9, 0.4};
const std::vector<std::uint32_t> kBatch = {4, 1, 1};

TEST(OracleCapabilities, HaveDefaultsThatUseTheGradient) {
  Naive oracle;
  expect_capabilities<double>(oracle, kPoint, {}, 1e-12);
  expect_capabilities<double>(oracle, kPoint, kBatch, 1e-12);
  EXPECT_EQ(oracle.cost(Coordinates::range(0, 1)), 1);
}

TEST(OracleCapabilities, ComputeNothingWhenStoppedBefore) {
  Naive oracle;
  std::vector<double> gradient(7);
  const std::atomic<bool> stop = true;
  EXPECT_FALSE(oracle.compute(kPoint, {}, gradient, {.stop = &stop}));
  EXPECT_EQ(oracle.calls, 0);
}

TEST(OracleCapabilities, KeepGradientsThatAreNotFiniteWhenClipping) {
  Naive oracle;
  std::vector<double> x = kPoint, gradient(7);
  x[3] = std::numeric_limits<double>::infinity();
  oracle.clipped_gradient(x, {}, 1, gradient);
  EXPECT_FALSE(std::isfinite(gradient[3]));
}

// An oracle whose operations each return another number.
class Powerful final : public Naive {
 public:
  std::optional<double> compute(Reals, Batch, RealsOut, const GradientOptions&) override { return 1; }
  double cost(const Coordinates&) const override { return 0.25; }
  double loss(Reals, Batch) override { return 3; }
  Directional<double> directional(Reals, Reals, Batch) override { return {4, 5}; }
  TwoLosses<double> two_gradients(Reals, Reals, Batch, RealsOut, RealsOut) override { return {6, 7}; }
  void sample_gradients(Reals, Batch, RealsOut, const TakeSample<double>& take) override { take(8, 9); }
  double clipped_gradient(Reals, Batch, double, RealsOut) override { return 10; }
};

TEST(OracleCapabilities, AreForwardedByAWrapper) {
  std::vector<std::unique_ptr<Oracle<double>>> list;
  list.push_back(std::make_unique<Powerful>());
  const OracleList<double> client_objectives(std::move(list));
  const auto oracle = client_objectives.oracle();
  std::vector<double> g(7), h(7);
  EXPECT_EQ(*oracle->compute(kPoint, {}, g, {}), 1);
  EXPECT_EQ(oracle->cost({}), 0.25);
  EXPECT_EQ(oracle->loss(kPoint, {}), 3);
  EXPECT_EQ(oracle->directional(kPoint, kPoint, {}).derivative, 5);
  EXPECT_EQ(oracle->two_gradients(kPoint, kPoint, {}, g, h).y, 7);
  double seen = 0;
  oracle->sample_gradients(kPoint, {}, g, [&](std::size_t k, double loss) { seen = k + loss; });
  EXPECT_EQ(seen, 17);
  EXPECT_EQ(oracle->clipped_gradient(kPoint, {}, 1, g), 10);
}

}  // namespace
}  // namespace gradwire
