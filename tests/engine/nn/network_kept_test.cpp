// Activations kept in bfloat16: the same loss and outputs, gradients to about eight bits, less memory.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

#include "engine/nn/executor.h"
#include "engine/nn/models/gpt.h"
#include "tests/engine/nn/network_checks.h"
#include "tests/engine/nn/network_zoo.h"

namespace gradwire {
namespace {

Network kept(Network network) {
  network.keep_activations(KeptActivations::kBFloat16);
  return network;
}

template <class Real>
double relative_error(std::span<const Real> got, std::span<const Real> exact) {
  double error = 0, size = 0;
  for (std::size_t j = 0; j < got.size(); ++j) {
    error += std::pow(static_cast<double>(got[j]) - static_cast<double>(exact[j]), 2);
    size += std::pow(static_cast<double>(exact[j]), 2);
  }
  return std::sqrt(error / size);
}

template <class Real>
void expect_close(const NamedNetwork& each, std::size_t count, std::size_t micro_batch) {
  SCOPED_TRACE(each.name + ", " + std::to_string(count) + " samples in microbatches of " +
               std::to_string(micro_batch));
  const RandomSamples<Real> samples(each.network, count, 1);
  const std::vector<double> point = random_parameters(each.network, 1);
  const std::vector<Real> x(point.begin(), point.end());
  std::vector<Real> exact(x.size()), got(x.size()), again(x.size());
  Executor<Real> plain(each.network, micro_batch), executor(kept(each.network), micro_batch);
  const double loss = plain.loss_and_gradient(x, count, samples.at(), exact);
  EXPECT_EQ(executor.loss_and_gradient(x, count, samples.at(), got), loss);
  EXPECT_LT(relative_error<Real>(got, exact), 1.0 / 128);
  // A pass does not affect the next.
  EXPECT_EQ(executor.loss(x, count, samples.at()), loss);
  EXPECT_EQ(executor.loss_and_gradient(x, count, samples.at(), again), loss);
  EXPECT_EQ(again, got);
  std::vector<Real> outputs, expected;
  const auto into = [](std::vector<Real>& to) {
    return [&to](std::size_t, std::span<const Real> y) { to.insert(to.end(), y.begin(), y.end()); };
  };
  executor.outputs(x, count, samples.at(), into(outputs));
  plain.outputs(x, count, samples.at(), into(expected));
  EXPECT_EQ(outputs, expected);
  // The fused step uses the same gradient.
  std::vector<Real> stepped = x;
  executor.descend(stepped, count, samples.at(), Real(1) / 64);
  for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(stepped[j], x[j] - got[j] / 64, 1e-5);
}

TEST(KeptActivations, GiveExactLossAndNearlyExactGradients) {
  for (const NamedNetwork& each : network_zoo())
    for (const std::size_t count : {1, 5, 21})
      for (const std::size_t micro_batch : {0, 1}) {
        expect_close<float>(each, count, micro_batch);
        expect_close<double>(each, count, micro_batch);
      }
}

TEST(KeptActivations, AreRounded) {
  const Network network = zoo_letters();
  const RandomSamples<float> samples(network, 4, 1);
  const std::vector<double> point = random_parameters(network, 1);
  const std::vector<float> x(point.begin(), point.end());
  std::vector<float> exact(x.size()), got(x.size());
  Executor<float>(network).loss_and_gradient(x, 4, samples.at(), exact);
  Executor<float>(kept(network)).loss_and_gradient(x, 4, samples.at(), got);
  EXPECT_NE(got, exact);
}

// docs/explanation/engine.md quotes the printed figures.
TEST(KeptActivations, ShrinkArenaOfDeepTransformerToTwoThirds) {
  const Network network = gpt({.vocabulary = 65, .context = 32, .width = 48, .layers = 24, .heads = 6});
  constexpr std::size_t kCount = 8;
  const RandomSamples<float> samples(network, kCount, 1);
  const std::vector<double> start = network.start(1);
  const std::vector<float> x(start.begin(), start.end());
  std::vector<float> exact(x.size()), got(x.size());
  Executor<float> plain(network), executor(kept(network));
  const double loss = plain.loss_and_gradient(x, kCount, samples.at(), exact);
  EXPECT_EQ(executor.loss_and_gradient(x, kCount, samples.at(), got), loss);
  const double error = relative_error<float>(got, exact);
  const double memory =
      static_cast<double>(executor.arena_bytes()) / static_cast<double>(plain.arena_bytes());
  std::printf("gradient error %.2e, arena %.3f of %zu bytes\n", error, memory, plain.arena_bytes());
  EXPECT_LT(error, 1e-2);
  EXPECT_LT(memory, 0.67);
}

}  // namespace
}  // namespace gradwire
