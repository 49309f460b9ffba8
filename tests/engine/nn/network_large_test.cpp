// Networks with a large layer: they take large microbatches, and batches of many samples go through the
// kernels of large layers.
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "engine/nn/network_oracle.h"
#include "engine/nn/plan.h"
#include "tests/engine/capability_checks.h"
#include "tests/engine/nn/network_checks.h"
#include "tests/engine/nn/network_zoo.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

// Returns sizes of a layer that is just large.
std::pair<std::size_t, std::size_t> large_sizes(Random& random) {
  const std::size_t in = 200 + random.below(300);
  return {in, (kLargeLayer + in - 1) / in + random.below(5)};
}

// Draws the input, which the large layer reads directly or after another layer, and what follows.
Network random_large_network(std::uint64_t seed) {
  Random random(seed, "large networks");
  const auto [in, out] = large_sizes(random);
  Network net;
  Tensor x;
  switch (seed % 4) {
    case 0: x = net.affine(net.feature_linear(in, out)); break;
    case 1: x = affine(net.linear(in, out), net.features(in)); break;
    case 2: x = affine(net.linear(in / 2 * 2, out + 8), net.embed(net.table(7, in / 2), 2)); break;
    default: x = affine(net.linear(in, out), tanh(net.affine(net.feature_linear(5, in))));
  }
  x = activation(static_cast<Activation>(random.below(4)), x);
  const std::size_t width = 1 + random.below(20);
  Tensor y = affine(net.linear(x.shape().size(), width, random.below(2) == 0), x);
  if (random.below(2) == 0) y = y + tanh(affine(net.linear(x.shape().size(), width), x));
  if (random.below(2) == 0)
    mean_squared_error(y);
  else
    cross_entropy(y);
  return net;
}

// Returns a transformer whose layers up and down are large, in 40 positions.
Network large_transformer() {
  constexpr std::size_t kWidth = 220;
  Network net(40);
  const Tensor x = net.embed(net.table(7, kWidth), net.table(40, kWidth));
  const Tensor inner =
      gelu(affine(net.linear(kWidth, 2 * kWidth + 10), norm(net.layer_norm(kWidth, 1e-2), x)));
  const Tensor y = x + affine(net.linear(2 * kWidth + 10, kWidth), inner);
  cross_entropy(affine(net.linear(kWidth, 7), y));
  return net;
}

TEST(LargeNetworks, AgreeWithTwin) {
  for (std::uint64_t seed = 0; seed < scaled<std::uint64_t>(12); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Network net = random_large_network(seed);
    EXPECT_GT(Executor<float>(net).micro_batch(), 16u);
    expect_agrees(net, {.counts = {1, 16, 31, 37 + seed},
                        .micro_batches = {0, 16},
                        .seed = seed,
                        .spread = 0.5,
                        .float_tolerance = 1e-4,
                        .double_tolerance = 1e-10});
    if (::testing::Test::HasFailure()) break;
  }
}

TEST(LargeNetworks, AgreeWithTwinForManyPositions) {
  expect_agrees(large_transformer(), {.counts = {1, 3},
                                      .micro_batches = {0, 2},
                                      .spread = 0.5,
                                      .float_tolerance = 1e-4,
                                      .double_tolerance = 1e-10});
}

Network large_perceptron() {
  Network net;
  const Tensor x = tanh(net.affine(net.feature_linear(330, 310)));
  const Linear middle = net.linear(310, 320), last = net.linear(320, 7);
  cross_entropy(affine(last, tanh(affine(middle, x))));
  return net;
}

template <class Real>
class LargePerceptron : public ::testing::Test {
 protected:
  static constexpr std::size_t kCount = 75;

  static std::vector<Real> point() {
    const std::vector<double> start = large_perceptron().start(1);
    return {start.begin(), start.end()};
  }
  static std::vector<Real> gradient(Executor<Real>& executor, const RandomSamples<Real>& samples,
                                    double& loss) {
    std::vector<Real> gradient(executor.dim());
    loss = executor.loss_and_gradient(point(), kCount, samples.at(), gradient);
    return gradient;
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(LargePerceptron, Reals);

TYPED_TEST(LargePerceptron, HasTheOptionalOperations) {
  using Real = TypeParam;
  const Network network = large_perceptron();
  NetworkOracle<Real> oracle(network, std::make_unique<DrawnExamples<Real>>(network, this->kCount));
  expect_capabilities<Real>(oracle, this->point(), {}, sizeof(Real) == 4 ? 2e-4 : 1e-12);
}

TYPED_TEST(LargePerceptron, KeepsEveryBitWithinBudget) {
  using Real = TypeParam;
  const Network network = large_perceptron();
  const RandomSamples<Real> samples(network, this->kCount, 1);
  Executor<Real> plain(network);
  double loss = 0, again = 0;
  const std::vector<Real> gradient = this->gradient(plain, samples, loss);
  Network limited = network;
  limited.limit_activations(ActivationBudget::sqrt());
  Executor<Real> executor(limited);
  EXPECT_EQ(executor.micro_batch(), plain.micro_batch());
  EXPECT_EQ(this->gradient(executor, samples, again), gradient);
  EXPECT_EQ(again, loss);
}

TYPED_TEST(LargePerceptron, KeepsActivationsInBFloat16) {
  using Real = TypeParam;
  Network network = large_perceptron();
  const RandomSamples<Real> samples(network, this->kCount, 1);
  Executor<Real> plain(network);
  network.keep_activations(KeptActivations::kBFloat16);
  Executor<Real> executor(network);
  EXPECT_EQ(executor.micro_batch(), plain.micro_batch());
  double loss = 0, again = 0;
  const std::vector<Real> exact = this->gradient(plain, samples, loss),
                          rounded = this->gradient(executor, samples, again);
  EXPECT_EQ(again, loss);
  double error = 0, norm = 0;
  for (std::size_t j = 0; j < exact.size(); ++j) {
    const double difference = static_cast<double>(rounded[j]) - static_cast<double>(exact[j]);
    error += difference * difference, norm += static_cast<double>(exact[j]) * static_cast<double>(exact[j]);
  }
  EXPECT_LT(error, 1e-4 * norm);
  EXPECT_GT(error, 0);
}

// Random paths are drawn for each microbatch. So their number must not fall.
TYPED_TEST(LargePerceptron, DrawsPathsForSixteenSamples) {
  using Real = TypeParam;
  const Network network = large_perceptron();
  const RandomSamples<Real> samples(network, this->kCount, 1);
  const std::vector<Real> x = this->point();
  std::vector<Real> got(x.size()), twin(x.size());
  const GradientOptions options{.paths = {.share = 0.5, .key = 3}};
  ASSERT_TRUE(Executor<Real>(network).compute(x, this->kCount, samples.at(), got, options));
  ASSERT_TRUE(Executor<Real>(network, 16).compute(x, this->kCount, samples.at(), twin, options));
  EXPECT_EQ(got, twin);
}

TYPED_TEST(LargePerceptron, StepsInPlace) {
  using Real = TypeParam;
  const Network network = large_perceptron();
  constexpr std::size_t kFew = 64;
  const RandomSamples<Real> samples(network, kFew, 1);
  Executor<Real> executor(network);
  ASSERT_GE(executor.micro_batch(), kFew);
  std::vector<Real> x = this->point(), gradient(x.size());
  executor.loss_and_gradient(x, kFew, samples.at(), gradient);
  std::vector<Real> stepped = x;
  executor.descend(stepped, kFew, samples.at(), Real(0.5));
  for (std::size_t j = 0; j < x.size(); ++j)
    ASSERT_NEAR(stepped[j], x[j] - Real(0.5) * gradient[j], sizeof(Real) == 4 ? 1e-6 : 1e-14) << j;
}

}  // namespace
}  // namespace gradwire
