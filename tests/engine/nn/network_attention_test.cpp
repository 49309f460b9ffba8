// Attention compared with the twin: heads, widths, positions, causal or not, and operands that are the same
// tensor.
#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

#include "tests/engine/nn/network_checks.h"
#include "tests/engine/nn/network_zoo.h"

namespace gradwire {
namespace {

Network attention_network(std::size_t positions, std::size_t width, std::size_t heads, bool causal) {
  Network net(positions);
  const Tensor x = net.features(3);
  const Tensor key = affine(net.linear(3, width), x), query = affine(net.linear(3, width), x),
               value = affine(net.linear(3, width), x);
  custom_loss(attention(key, query, value, heads, causal), log_cosh_loss);
  return net;
}

TEST(NetworkAttention, OneHeadMatchesTwin) {
  for (const std::size_t positions : {1, 2, 3, 5, 8, 9, 16, 17, 31, 64})
    for (const std::size_t width : {1, 3, 5, 7, 13, 24, 33, 65})
      for (const bool causal : {true, false}) {
        if (positions * width > 1200) continue;  // the twin is slow
        SCOPED_TRACE(std::to_string(positions) + " positions, width " + std::to_string(width));
        expect_agrees(attention_network(positions, width, 1, causal),
                      {.counts = {1, 2}, .micro_batches = {1, 2}});
      }
}

TEST(NetworkAttention, SeveralHeadsMatchTwin) {
  for (const std::size_t positions : {1, 2, 3, 4, 5, 8, 9, 13, 16, 17})
    for (const std::size_t heads : {2, 3, 6})
      for (const std::size_t slice : {1, 2, 3, 4, 5, 8})
        for (const bool causal : {true, false}) {
          SCOPED_TRACE(std::to_string(positions) + " positions, " + std::to_string(heads) + " heads of " +
                       std::to_string(slice));
          expect_agrees(attention_network(positions, heads * slice, heads, causal),
                        {.counts = {1, 3}, .micro_batches = {1, 2}});
        }
}

TEST(NetworkAttention, AllMicroBatchSizesMatchTwin) {
  for (const std::size_t positions : {3, 8}) {
    SCOPED_TRACE(positions);
    expect_agrees(attention_network(positions, 6, 3, true),
                  {.counts = {1, 2, 3, 5, 16, 18}, .micro_batches = {1, 2, 3, 4, 5, 7, 8, 15, 16}});
  }
}

// Two or all of the three operands are the same tensor. Its gradient is the sum of the operands' gradients.
TEST(NetworkAttention, EqualOperandsMatchTwin) {
  for (int same = 0; same < 4; ++same)
    for (const bool causal : {true, false})
      for (const std::size_t positions : {1, 4, 7, 8}) {
        SCOPED_TRACE(std::to_string(same) + ", positions " + std::to_string(positions));
        Network net(positions);
        const Tensor x = affine(net.linear(3, 6), net.features(3)),
                     y = affine(net.linear(3, 6), net.features(3));
        if (same == 0) custom_loss(attention(x, x, x, 2, causal), log_cosh_loss);
        if (same == 1) custom_loss(attention(x, x, y, 2, causal), log_cosh_loss);
        if (same == 2) custom_loss(attention(x, y, x, 2, causal), log_cosh_loss);
        if (same == 3) custom_loss(attention(y, x, x, 2, causal), log_cosh_loss);
        expect_agrees(net);
      }
}

TEST(NetworkAttention, FeaturesAndSharedOperandsMatchTwin) {
  for (const bool causal : {true, false}) {
    Network net(5);
    const Tensor data = net.features(4), x = tanh(affine(net.linear(4, 4), data));
    const Tensor a = attention(data, x, x, 2, causal), b = attention(x, data, a, 1, causal);
    const Tensor c = attention(a, b, data, 4, causal);
    custom_loss(a + b * c + x, log_cosh_loss);
    expect_agrees(net, {.counts = {1, 3, 9}, .micro_batches = {0, 1, 4}, .double_tolerance = 1e-10});
  }
}

TEST(NetworkAttention, LargeScoresMatchTwin) {
  for (const bool causal : {true, false}) {
    expect_agrees(attention_network(9, 4, 2, causal), {.counts = {1, 3},
                                                       .micro_batches = {1, 2},
                                                       .scale = 10,
                                                       .float_tolerance = 2e-3,
                                                       .double_tolerance = 1e-9});
  }
}

// At every position the scores rise from key to key, from -depth towards zero. With a large depth a masked
// key would win if its score were a finite number.
template <class Real>
void expect_only_seen_positions_count(std::size_t positions, bool causal, Real depth) {
  Network net(positions);
  const Tensor x = net.features(3);
  const Tensor key = affine(net.linear(3, 1, false), x), query = affine(net.linear(3, 1, false), x),
               value = affine(net.linear(3, 1, false), x);
  mean_squared_error(attention(key, query, value, 1, causal));
  const std::vector<Real> point = {1, 0, 0, 0, 1, 0, 0, 0, 1}, targets(positions);
  std::vector<Real> features;
  for (std::size_t t = 0; t < positions; ++t) {
    const Real share = static_cast<Real>(positions - t) / static_cast<Real>(positions);
    features.insert(features.end(), {-depth * share, Real(1), static_cast<Real>(t + 1)});
  }
  Example<Real> example;
  example.features = features, example.targets = targets;
  const std::vector<double> wide_point(point.begin(), point.end());
  const LossAndGradient want = naive_loss_and_gradient(net, wide_point, example);
  for (const Kernels<Real>* kernels : available_kernels<Real>())
    for (const std::size_t count : {1, 3}) {
      SCOPED_TRACE(std::string(kernels->name) + " kernels, " + std::to_string(positions) + " positions, " +
                   std::to_string(count) + " samples, scores from " + std::to_string(-depth));
      Executor<Real> executor(net, 0, kernels);
      const auto at = [&](std::size_t) { return example; };
      executor.outputs(point, count, at, [&](std::size_t, std::span<const Real> y) {
        for (std::size_t t = 0; t < positions; ++t)
          EXPECT_NEAR(y[t], causal ? t + 1 : positions, 1e-4) << "at position " << t;
      });
      std::vector<Real> gradient(point.size());
      EXPECT_NEAR(executor.loss_and_gradient(point, count, at, gradient), want.loss, 1e-4 * want.loss);
      for (std::size_t j = 0; j < gradient.size(); ++j)
        EXPECT_NEAR(gradient[j], want.gradient[j], 1e-4 * (1 + std::abs(want.gradient[j]))) << j;
    }
}
TEST(NetworkAttention, MaskedPositionsDoNotCountHoweverLowScoresAre) {
  for (const std::size_t positions : {1, 2, 5, 8, 9, 16, 33, 40})
    for (const bool causal : {true, false}) {
      for (const float depth : {2e3f, 1e6f, 1e20f, 1e30f, 1e33f, 1e35f})
        expect_only_seen_positions_count<float>(positions, causal, depth);
      for (const double depth : {2e3, 1e30, 1e33, 1e100, 1e300})
        expect_only_seen_positions_count<double>(positions, causal, depth);
    }
}

TEST(NetworkAttention, TransformerMatchesTwin) {
  for (const std::size_t positions : {1, 2, 7, 8, 12, 16})
    for (const std::size_t heads : {1, 2, 3, 6}) {
      SCOPED_TRACE(std::to_string(positions) + " positions, " + std::to_string(heads) + " heads");
      expect_agrees(zoo_transformer(positions, 12, heads), {.counts = {1, 4}, .micro_batches = {0, 1, 3}});
    }
}

}  // namespace
}  // namespace gradwire
