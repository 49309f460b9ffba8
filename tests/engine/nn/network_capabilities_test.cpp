// The optional operations of a network's oracle, for every layer, both types and every set of kernels.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

#include "engine/kernels/select.h"
#include "engine/nn/network_oracle.h"
#include "tests/engine/capability_checks.h"
#include "tests/engine/nn/network_samples.h"
#include "tests/engine/nn/network_zoo.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

// Networks with sizes that some kernels of engine/nn/micro_batch_ops.cpp do not reach: wide, with one
// position.
Network wide_letters() {
  Network net;
  const Table table = net.table(9, 33);
  const Linear first = net.linear(4 * 33, 70), second = net.linear(70, 9);
  cross_entropy(affine(second, tanh(affine(first, net.embed(table, 4)))));
  return net;
}
Network wide_transformer() { return zoo_transformer(8, 24, 6); }

std::vector<NamedNetwork> networks() {
  std::vector<NamedNetwork> all = network_zoo();
  all.push_back({"wide letters", wide_letters()});
  all.push_back({"wide transformer", wide_transformer()});
  all.push_back({"long transformer", zoo_transformer(19, 6, 2)});
  return all;
}

template <class Real>
void expect_capabilities_of_networks(double tolerance) {
  for (const NamedNetwork& named : networks()) {
    SCOPED_TRACE(named.name);
    NetworkOracle<Real> oracle(named.network, std::make_unique<DrawnExamples<Real>>(named.network, 19));
    const std::vector<double> start = random_parameters(named.network, 1);
    const std::vector<Real> x(start.begin(), start.end());
    const std::vector<std::uint32_t> one = {3}, some = {4, 2, 2, 11, 18};
    expect_capabilities<Real>(oracle, x, {}, tolerance);
    expect_capabilities<Real>(oracle, x, some, tolerance);
    expect_capabilities<Real>(oracle, x, one, tolerance);
  }
}

TEST(NetworkCapabilities, AgreeWithPlainGradientInDouble) { expect_capabilities_of_networks<double>(1e-12); }
TEST(NetworkCapabilities, AgreeWithPlainGradientInSingle) { expect_capabilities_of_networks<float>(2e-4f); }

TEST(NetworkCapabilities, AgreeWithRegularizer) {
  const Network network = zoo_letters();
  NetworkOracle<double> oracle(network, std::make_unique<DrawnExamples<double>>(network, 7), nullptr,
                               Regularizer::kNonconvex, 0.1);
  const std::vector<double> x = random_parameters(network, 1);
  expect_capabilities<double>(oracle, x, {}, 1e-12);
}

template <class Real>
void expect_restricted_with_every_kernel() {
  for (const Kernels<Real>* kernels : available_kernels<Real>())
    for (const NamedNetwork& named : networks())
      for (const std::size_t count : {1, 5, 19}) {
        SCOPED_TRACE(named.name + " " + kernels->name);
        Executor<Real> executor(named.network, 0, kernels);
        const RandomSamples<Real> samples(named.network, count, 4);
        const std::vector<double> start = random_parameters(named.network, 1);
        const std::vector<Real> x(start.begin(), start.end());
        std::vector<Real> plain(x.size()), part(x.size());
        executor.loss_and_gradient(x, count, samples.at(), plain);
        for (std::size_t first = 0; first < x.size(); first += 1 + x.size() / 17) {
          const std::size_t size = std::min(1 + x.size() / 9, x.size() - first);
          ASSERT_TRUE(
              executor.compute(x, count, samples.at(), part, {.wanted = Coordinates::range(first, size)}));
          ASSERT_EQ(std::memcmp(&part[first], &plain[first], size * sizeof(Real)), 0) << first;
        }
      }
}

TEST(NetworkCapabilities, RestrictGradientsToTheSameBitsInEveryKernel) {
  expect_restricted_with_every_kernel<float>();
  expect_restricted_with_every_kernel<double>();
}

TEST(NetworkCapabilities, PredictThatUpperLayersCostLess) {
  const Network network = wide_letters();
  const Executor<float> executor(network);
  const std::size_t d = network.dim();
  const double last = executor.cost(Coordinates::range(d - 1, 1)),
               first = executor.cost(Coordinates::range(400, 1)),
               table = executor.cost(Coordinates::range(0, 1));
  EXPECT_LT(last, first);
  EXPECT_LT(first, table);
  EXPECT_DOUBLE_EQ(executor.cost(Coordinates::range(0, d)), 1);
  EXPECT_LT(executor.cost(Coordinates::list({})), last);
}

TEST(NetworkCapabilities, DeliverLastLayerFirst) {
  const Network network = wide_letters();
  Executor<float> executor(network);
  const RandomSamples<float> samples(network, 40, 4);
  const std::vector<double> start = random_parameters(network, 1);
  const std::vector<float> x(start.begin(), start.end());
  std::vector<float> gradient(x.size());
  std::vector<CoordinateRange> ranges;
  GradientOptions options;
  options.finished = [&](CoordinateRange range) { ranges.push_back(range); };
  ASSERT_TRUE(executor.compute(x, 40, samples.at(), gradient, options));
  const std::size_t table = 9 * 33, first = table + 70 * (4 * 33 + 1);
  EXPECT_EQ(ranges, (std::vector<CoordinateRange>{{first, x.size()}, {table, first}, {0, table}}));
}

// An example sets the stop token when it is read, as another thread could.
TEST(NetworkCapabilities, StopBetweenMicroBatches) {
  const Network network = zoo_letters();
  Executor<float> executor(network);
  const RandomSamples<float> samples(network, 64, 4);
  const std::vector<double> start = random_parameters(network, 1);
  const std::vector<float> x(start.begin(), start.end());
  std::vector<float> gradient(x.size());
  std::atomic<bool> stop = false;
  std::size_t most = 0;
  const auto example = [&](std::size_t k) {
    most = std::max(most, k);
    stop = k >= 20;
    return samples[k];
  };
  EXPECT_FALSE(executor.compute(x, 64, example, gradient, {.stop = &stop}));
  EXPECT_LT(most, 32u);
}

TEST(NetworkCapabilities, StopBetweenOperationsOfBackwardPass) {
  const Network network = wide_letters();
  Executor<float> executor(network);
  const RandomSamples<float> samples(network, 3, 4);
  const std::vector<double> start = random_parameters(network, 1);
  const std::vector<float> x(start.begin(), start.end());
  std::vector<float> gradient(x.size());
  std::atomic<bool> stop = false;
  std::size_t ranges = 0;
  GradientOptions options{.stop = &stop};
  options.finished = [&](CoordinateRange) {
    ++ranges;
    stop = true;
  };
  EXPECT_FALSE(executor.compute(x, 3, samples.at(), gradient, options));
  EXPECT_EQ(ranges, 1u);
}

// Expects that the mean over many draws is the gradient. `relative` is the variance of one draw, relative to
// the squared norm of the gradient.
template <class Real>
void expect_unbiased(const Network& network, std::size_t count, double share, double relative) {
  Executor<Real> executor(network);
  const RandomSamples<Real> samples(network, count, 4);
  const std::vector<double> start = random_parameters(network, 1);
  const std::vector<Real> x(start.begin(), start.end());
  std::vector<Real> plain(x.size()), random(x.size());
  const double loss = executor.loss_and_gradient(x, count, samples.at(), plain);
  std::vector<double> mean(x.size());
  constexpr std::size_t kDraws = scaled(4000);
  double variance = 0, square = 0, error = 0;
  for (std::size_t key = 0; key < kDraws; ++key) {
    const auto got =
        executor.compute(x, count, samples.at(), random, {.paths = {.share = share, .key = key}});
    ASSERT_EQ(got, loss);
    for (std::size_t j = 0; j < x.size(); ++j) {
      const double distance = static_cast<double>(random[j]) - static_cast<double>(plain[j]);
      variance += distance * distance / kDraws;
      mean[j] += static_cast<double>(random[j]) / kDraws;
    }
  }
  for (std::size_t j = 0; j < x.size(); ++j) {
    square += static_cast<double>(plain[j]) * static_cast<double>(plain[j]);
    error += std::pow(mean[j] - static_cast<double>(plain[j]), 2);
  }
  EXPECT_GT(variance, 0);
  EXPECT_LT(variance / square, relative);
  // The expectation of the error is variance / kDraws. Units are kept in runs, so few directions have most of
  // the error.
  EXPECT_LT(error, 2 * kSlowdown * variance / kDraws);
}

TEST(NetworkCapabilities, RandomPathsAreUnbiasedWithBoundedVariance) {
  expect_unbiased<double>(wide_letters(), 5, 0.5, 2);
  expect_unbiased<float>(wide_letters(), 1, 0.5, 2);
  expect_unbiased<float>(wide_letters(), 33, 0.25, 4);
  expect_unbiased<double>(zoo_transformer(5, 60, 2), 3, 0.5, 20);
}

TEST(NetworkCapabilities, RandomPathsDependOnlyOnKey) {
  const Network network = wide_letters();
  Executor<float> executor(network);
  const RandomSamples<float> samples(network, 20, 4);
  const std::vector<double> start = random_parameters(network, 1);
  const std::vector<float> x(start.begin(), start.end());
  std::vector<float> a(x.size()), b(x.size());
  const auto gradient = [&](std::uint64_t key, std::vector<float>& to, Coordinates wanted = {}) {
    ASSERT_TRUE(
        executor.compute(x, 20, samples.at(), to, {.wanted = wanted, .paths = {.share = 0.5, .key = key}}));
  };
  gradient(1, a);
  gradient(1, b);
  EXPECT_EQ(a, b);
  gradient(2, b);
  EXPECT_NE(a, b);
  for (std::size_t first = 0; first + 50 < x.size(); first += 97) {
    gradient(1, b, Coordinates::range(first, 50));
    ASSERT_EQ(std::memcmp(&a[first], &b[first], 50 * sizeof(float)), 0) << first;
  }
}

TEST(NetworkCapabilities, SlowStopTokenActsWithinMicroseconds) {
  const Network network = zoo_transformer(8, 24, 6);
  Executor<float> executor(network);
  const RandomSamples<float> samples(network, 64, 4);
  const std::vector<double> start = random_parameters(network, 1);
  const std::vector<float> x(start.begin(), start.end());
  std::vector<float> gradient(x.size());
  using Clock = std::chrono::steady_clock;
  double best = 1;
  for (int k = 0; k < 200 && best > 50e-6; ++k) {
    std::atomic<bool> stop = false, runs = false;
    Clock::time_point ended;
    std::thread thread([&] {
      runs = true;
      while (executor.compute(x, 64, samples.at(), gradient, {.stop = &stop})) continue;
      ended = Clock::now();
    });
    while (!runs) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    const Clock::time_point told = Clock::now();
    stop = true;
    thread.join();
    best = std::min(best, std::chrono::duration<double>(ended - told).count());
  }
  EXPECT_LT(best, 50e-6);
}

}  // namespace
}  // namespace gradwire
