// Threads that share one gradient: any number of them gives the bits of one thread.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/nn/executor.h"
#include "engine/nn/models/mlp.h"
#include "parallel/shared_threads.h"
#include "tests/engine/nn/network_samples.h"
#include "tests/engine/nn/network_zoo.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

// Returns the numbers of threads to compare with one.
std::vector<unsigned> thread_counts() {
  if (kSanitized) return {3};
  return {1, 2, 3, 7, 16};
}

// Networks whose batches of some hundred samples have several blocks.
std::vector<NamedNetwork> networks() {
  return {{"perceptron", mlp({96, {64}, 10})},
          {"transformer", zoo_transformer(16, 24, 4)},
          {"image", zoo_image()}};
}

template <class Real>
bool same_bits(const std::vector<Real>& a, const std::vector<Real>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0;
}

template <class Real>
std::vector<Real> point(const Network& network) {
  const std::vector<double> x = random_parameters(network, 1);
  return {x.begin(), x.end()};
}

template <class Real>
class SharedGradient : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SharedGradient, Reals);

TYPED_TEST(SharedGradient, HasTheBitsOfOneThread) {
  using Real = TypeParam;
  for (const NamedNetwork& each : networks()) {
    const RandomSamples<Real> samples(each.network, 1200, 1);
    const std::vector<Real> x = point<Real>(each.network);
    ASSERT_EQ(Executor<Real>(each.network).blocks(1), 1u);
    ASSERT_GT(Executor<Real>(each.network).blocks(1200), 3u);
    for (const std::size_t count : {1, 40, 333, 1200}) {
      Executor<Real> alone(each.network);
      std::vector<Real> expected(x.size());
      const double loss = alone.loss_and_gradient(x, count, samples.at(), expected);
      EXPECT_EQ(alone.loss(x, count, samples.at()), loss) << each.name;
      for (const unsigned threads : thread_counts()) {
        SCOPED_TRACE(each.name + ", " + std::to_string(count) + " samples, " + std::to_string(threads));
        Executor<Real> executor(each.network);
        executor.share_work(shared_threads(threads));
        std::vector<Real> gradient(x.size(), Real(7));
        for (int call = 0; call < 2; ++call) {
          EXPECT_EQ(executor.loss_and_gradient(x, count, samples.at(), gradient), loss);
          EXPECT_TRUE(same_bits(gradient, expected));
        }
        EXPECT_EQ(executor.loss(x, count, samples.at()), loss);
      }
    }
  }
}

TYPED_TEST(SharedGradient, IsTheMeanOfTheSamplesGradients) {
  using Real = TypeParam;
  constexpr std::size_t kCount = 700;
  for (const NamedNetwork& each : networks()) {
    const RandomSamples<Real> samples(each.network, kCount, 2);
    const std::vector<Real> x = point<Real>(each.network);
    Executor<Real> executor(each.network);
    std::vector<Real> one(x.size()), gradient(x.size());
    std::vector<double> mean(x.size(), 0.0);
    double loss = 0;
    for (std::size_t k = 0; k < kCount; ++k) {
      loss += executor.loss_and_gradient(
                  x, 1, [&](std::size_t) { return samples[k]; }, one) /
              kCount;
      for (std::size_t j = 0; j < x.size(); ++j) mean[j] += static_cast<double>(one[j]) / kCount;
    }
    executor.share_work(shared_threads(3));
    const double tolerance = sizeof(Real) == sizeof(float) ? 1e-4 : 1e-12;
    EXPECT_NEAR(executor.loss_and_gradient(x, kCount, samples.at(), gradient), loss, tolerance) << each.name;
    for (std::size_t j = 0; j < x.size(); ++j)
      ASSERT_NEAR(static_cast<double>(gradient[j]), mean[j], tolerance) << each.name << ", " << j;
  }
}

// Compares what the other operations of an executor return on one and on several threads.
TYPED_TEST(SharedGradient, HasAllOperations) {
  using Real = TypeParam;
  constexpr std::size_t kCount = 900;
  for (const NamedNetwork& each : networks()) {
    const RandomSamples<Real> samples(each.network, kCount, 3);
    const std::vector<Real> x = point<Real>(each.network);
    std::vector<Real> y(x);
    for (Real& number : y) number += Real(0.01);
    Executor<Real> alone(each.network);
    std::vector<Real> first(x.size()), second(x.size());
    alone.loss_and_gradient(x, kCount, samples.at(), first);
    alone.loss_and_gradient(y, kCount, samples.at(), second);
    const auto tangent = alone.directional(x, y, kCount, samples.at());
    std::vector<Real> outputs(kCount * alone.positions() * alone.output_channels()), others(outputs.size());
    const auto into = [&](std::vector<Real>& all) {
      return [&](std::size_t k, std::span<const Real> output) {
        std::ranges::copy(output, all.begin() + static_cast<std::ptrdiff_t>(k * output.size()));
      };
    };
    alone.outputs(x, kCount, samples.at(), into(outputs));
    const auto factor = [](double square) { return 1 / (1 + square); };
    std::vector<Real> scaled(x.size());
    if (alone.knows_sample_norms()) alone.scaled_gradients(x, kCount, samples.at(), factor, scaled);
    std::vector<Real> stepped(x);
    alone.descend(stepped, kCount, samples.at(), Real(0.1));
    for (const unsigned threads : thread_counts()) {
      SCOPED_TRACE(each.name + ", " + std::to_string(threads));
      Executor<Real> executor(each.network);
      executor.share_work(shared_threads(threads));
      std::vector<Real> at_x(x.size()), at_y(x.size());
      executor.two_gradients(x, y, kCount, samples.at(), at_x, at_y);
      EXPECT_TRUE(same_bits(at_x, first));
      EXPECT_TRUE(same_bits(at_y, second));
      const auto other = executor.directional(x, y, kCount, samples.at());
      EXPECT_EQ(other.loss, tangent.loss);
      EXPECT_EQ(other.derivative, tangent.derivative);
      executor.outputs(x, kCount, samples.at(), into(others));
      EXPECT_TRUE(same_bits(others, outputs));
      if (executor.knows_sample_norms()) {
        executor.scaled_gradients(x, kCount, samples.at(), factor, at_x);
        EXPECT_TRUE(same_bits(at_x, scaled));
      }
      std::vector<Real> moved(x);
      executor.descend(moved, kCount, samples.at(), Real(0.1));
      EXPECT_TRUE(same_bits(moved, stepped));
    }
  }
}

TYPED_TEST(SharedGradient, ComputesTheWantedCoordinatesAndReportsEachOnce) {
  using Real = TypeParam;
  constexpr std::size_t kCount = 900;
  const Network network = mlp({96, {64}, 10});
  const RandomSamples<Real> samples(network, kCount, 4);
  const std::vector<Real> x = point<Real>(network);
  Executor<Real> executor(network);
  std::vector<Real> expected(x.size());
  executor.loss_and_gradient(x, kCount, samples.at(), expected);
  executor.share_work(shared_threads(4));
  const std::vector<std::uint32_t> list = {3, 700, 6000};
  for (const Coordinates& wanted : {Coordinates(), Coordinates::range(500, 1000), Coordinates::list(list)}) {
    std::vector<Real> gradient(x.size());
    std::vector<int> reported(x.size(), 0);
    GradientOptions options{.wanted = wanted};
    options.finished = [&](CoordinateRange range) {
      for (std::size_t j = range.first; j < range.end; ++j) ++reported[j];
    };
    ASSERT_TRUE(executor.compute(x, kCount, samples.at(), gradient, options));
    wanted.for_runs(x.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t j = begin; j < end; ++j) {
        EXPECT_EQ(gradient[j], expected[j]) << j;
        EXPECT_EQ(reported[j], 1) << j;
      }
    });
  }
}

TYPED_TEST(SharedGradient, StopsAndThrowsInTheMiddleAndWorksAgain) {
  using Real = TypeParam;
  constexpr std::size_t kCount = 1200;
  const Network network = mlp({96, {64}, 10});
  const RandomSamples<Real> samples(network, kCount, 5);
  const std::vector<Real> x = point<Real>(network);
  Executor<Real> executor(network);
  std::vector<Real> expected(x.size()), gradient(x.size());
  const double loss = executor.loss_and_gradient(x, kCount, samples.at(), expected);
  executor.share_work(shared_threads(3));

  std::atomic<bool> stop = false;
  const auto stopping = [&](std::size_t k) {
    if (k == 600) stop = true;
    return samples[k];
  };
  EXPECT_FALSE(executor.compute(x, kCount, stopping, gradient, {.stop = &stop}));
  const auto throwing = [&](std::size_t k) {
    if (k == 601) throw std::runtime_error("sample 601");
    return samples[k];
  };
  EXPECT_THROW(executor.loss_and_gradient(x, kCount, throwing, gradient), std::runtime_error);
  EXPECT_EQ(executor.loss_and_gradient(x, kCount, samples.at(), gradient), loss);
  EXPECT_TRUE(same_bits(gradient, expected));
}

TYPED_TEST(SharedGradient, KeepsTheBitsUnderAnActivationBudget) {
  using Real = TypeParam;
  constexpr std::size_t kCount = 900;
  Network network = mlp({96, {64, 64, 64}, 10});
  const RandomSamples<Real> samples(network, kCount, 6);
  const std::vector<Real> x = point<Real>(network);
  Executor<Real> plain(network);
  std::vector<Real> expected(x.size()), gradient(x.size());
  plain.loss_and_gradient(x, kCount, samples.at(), expected);
  network.limit_activations(ActivationBudget::sqrt());
  Executor<Real> executor(network);
  executor.share_work(shared_threads(3));
  executor.loss_and_gradient(x, kCount, samples.at(), gradient);
  EXPECT_TRUE(same_bits(gradient, expected));
}

TEST(SharedThreads, RunEachItemOnceAndRethrow) {
  const WorkSharing sharing = shared_threads(4);
  std::vector<std::atomic<int>> runs(100);
  sharing.for_each(runs.size(), [&](std::size_t i) { ++runs[i]; });
  for (const auto& each : runs) EXPECT_EQ(each, 1);
  EXPECT_THROW(sharing.for_each(100,
                                [](std::size_t i) {
                                  if (i == 50) throw std::runtime_error("item 50");
                                }),
               std::runtime_error);
  sharing.for_each(runs.size(), [&](std::size_t i) { ++runs[i]; });
  for (const auto& each : runs) EXPECT_EQ(each, 2);
}

}  // namespace
}  // namespace gradwire
