// Every operation on vectors, alone between a linear layer and a loss, for odd widths and numbers of
// positions.
#include <array>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/nn/network_checks.h"
#include "tests/engine/nn/network_zoo.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

constexpr std::array<std::size_t, 8> kWidths = {1, 3, 5, 7, 13, 24, 33, 65};
constexpr std::array<std::size_t, 10> kPositions = {1, 2, 3, 5, 8, 9, 16, 17, 31, 64};
const Comparison kFew{.counts = {1, 3}, .micro_batches = {1, 2, 0}};

// Returns a vector of `width` numbers that takes a gradient.
Tensor some(Network& net, std::size_t width) { return affine(net.linear(3, width), net.features(3)); }

constexpr std::size_t kManyNumbers = scaled(600);

// Checks the operation of `build` in networks of all widths and numbers of positions. Checks only some of the
// large networks.
template <class Build>
void expect_agrees_everywhere(Build&& build, const Comparison& comparison = kFew) {
  for (const std::size_t positions : kPositions)
    for (const std::size_t width : kWidths) {
      if (positions * width > kManyNumbers && (positions + width) % 3 != 0) continue;  // the twin is slow
      SCOPED_TRACE(std::to_string(positions) + " positions, width " + std::to_string(width));
      Network net(positions);
      build(net, width);
      expect_agrees(net, comparison);
    }
}

TEST(NetworkOps, AffineOfFeaturesMatchesTwin) {
  for (const std::size_t in : {1, 2, 16, 45}) {
    expect_agrees_everywhere([&](Network& net, std::size_t width) {
      custom_loss(affine(net.linear(in, width), net.features(in)), log_cosh_loss);
    });
  }
}

TEST(NetworkOps, AffineBetweenLayersMatchesTwin) {
  for (const std::size_t out : {1, 4, 11, 33}) {
    expect_agrees_everywhere([&](Network& net, std::size_t width) {
      custom_loss(affine(net.linear(width, out), some(net, width)), log_cosh_loss);
    });
  }
}

TEST(NetworkOps, AffineWithoutBiasMatchesTwin) {
  expect_agrees_everywhere([](Network& net, std::size_t width) {
    const Tensor x = affine(net.linear(4, width, false), net.features(4));
    custom_loss(affine(net.linear(width, 6, false), x), log_cosh_loss);
  });
}

TEST(NetworkOps, WideAffineMatchesTwin) {
  for (const auto& [in, out] : {std::pair(130, 70), std::pair(257, 9), std::pair(9, 257), std::pair(96, 24)})
    for (const std::size_t positions : {1, 4}) {
      Network net(positions);
      const Tensor x = tanh(affine(net.linear(5, in), net.features(5)));
      cross_entropy(affine(net.linear(in, out), x));
      SCOPED_TRACE(std::to_string(in) + " to " + std::to_string(out));
      expect_agrees(net, {.counts = {1, 4, 16}, .micro_batches = {1, 4, 16}});
    }
}

TEST(NetworkOps, ActivationsMatchTwin) {
  for (const Activation function :
       {Activation::kTanh, Activation::kRelu, Activation::kSigmoid, Activation::kGelu}) {
    SCOPED_TRACE(static_cast<int>(function));
    expect_agrees_everywhere([&](Network& net, std::size_t width) {
      custom_loss(activation(function, some(net, width)), log_cosh_loss);
    });
  }
}

TEST(NetworkOps, ActivationsInPlaceMatchTwin) {
  // Only the activation reads the affine map, so its memory may be reused.
  for (const Activation function :
       {Activation::kTanh, Activation::kRelu, Activation::kSigmoid, Activation::kGelu}) {
    SCOPED_TRACE(static_cast<int>(function));
    expect_agrees_everywhere([&](Network& net, std::size_t width) {
      const Tensor x = activation(function, activation(function, some(net, width)));
      custom_loss(affine(net.linear(width, 2), x), log_cosh_loss);
    });
  }
}

TEST(NetworkOps, SumsMatchTwin) {
  expect_agrees_everywhere([](Network& net, std::size_t width) {
    const Tensor x = net.features(3);
    custom_loss(affine(net.linear(3, width), x) + affine(net.linear(3, width), x), log_cosh_loss);
  });
}

TEST(NetworkOps, ProductsMatchTwin) {
  expect_agrees_everywhere([](Network& net, std::size_t width) {
    const Tensor x = net.features(3);
    custom_loss(affine(net.linear(3, width), x) * affine(net.linear(3, width), x), log_cosh_loss);
  });
}

TEST(NetworkOps, NormMatchesTwin) {
  for (const double epsilon : {1.0, 0.02}) {
    expect_agrees_everywhere([&](Network& net, std::size_t width) {
      custom_loss(norm(net.layer_norm(width, epsilon), some(net, width)), log_cosh_loss);
    });
  }
}

TEST(NetworkOps, NormWithoutEpsilonMatchesTwin) {
  for (const std::size_t width : {13, 24, 65}) {
    Network net(8);
    custom_loss(norm(net.layer_norm(width, 0), some(net, width)), log_cosh_loss);
    expect_agrees(net, kFew);
  }
}

TEST(NetworkOps, NormOfFeaturesMatchesTwin) {
  Network net(3);
  custom_loss(norm(net.layer_norm(7), net.features(7)), log_cosh_loss);
  expect_agrees(net, kFew);
}

TEST(NetworkOps, MeanOverPositionsMatchesTwin) {
  expect_agrees_everywhere([](Network& net, std::size_t width) {
    custom_loss(mean_over_positions(some(net, width)), log_cosh_loss);
  });
}

TEST(NetworkOps, CrossEntropyMatchesTwin) {
  expect_agrees_everywhere([](Network& net, std::size_t width) { cross_entropy(some(net, width)); });
}

TEST(NetworkOps, MeanSquaredErrorMatchesTwin) {
  expect_agrees_everywhere([](Network& net, std::size_t width) { mean_squared_error(some(net, width)); });
}

TEST(NetworkOps, LossesOfImagesMatchTwin) {
  for (const int loss : {0, 1, 2}) {
    Network net(2);
    const Tensor x = convolve(net.convolution(1, 2, 2), net.features(TensorShape{1, 3, 4}));
    if (loss == 0) cross_entropy(x);
    if (loss == 1) mean_squared_error(x);
    if (loss == 2) custom_loss(x, log_cosh_loss);
    expect_agrees(net);
  }
}

TEST(NetworkOps, RejectsLossThatLeavesDerivativeUnwritten) {
  for (const int left : {-1, 0, 1, 2}) {
    Network net(2);
    int calls = 0;
    custom_loss(
        affine(net.linear(3, 3), net.features(3)),
        [&](std::span<const double>, std::size_t, std::span<const double>, std::span<double> derivative) {
          const bool last = ++calls == 4;  // the second position of the second sample
          for (int c = 0; c < 3; ++c)
            if (!last || c != left) derivative[c] = std::numeric_limits<double>::quiet_NaN();
          if (last && left >= 0) derivative[left] += 1;  // adding to an entry does not count as writing it
          return 1.0;
        });
    Executor<float> executor(net, 4);
    const std::vector<float> x(net.dim()), features(6);
    Example<float> example;
    example.features = features;
    try {
      EXPECT_EQ(executor.loss(x, 2, [&](std::size_t) { return example; }), 1);
      EXPECT_EQ(left, -1);
    } catch (const std::logic_error& error) {
      EXPECT_NE(std::string(error.what()).find("entry " + std::to_string(left) + " of 3"), std::string::npos)
          << error.what();
    }
  }
}

TEST(NetworkOps, LossesWithoutParametersMatchTwin) {
  for (const int loss : {0, 1, 2}) {
    Network net(3);
    const Tensor x = net.features(5);
    if (loss == 0) cross_entropy(x);
    if (loss == 1) mean_squared_error(x);
    if (loss == 2) custom_loss(tanh(x * x), log_cosh_loss);
    expect_agrees(net);
  }
}

TEST(NetworkOps, EmbedOfSeveralTokensMatchesTwin) {
  for (std::size_t tokens = 1; tokens <= 16; ++tokens)
    for (const std::size_t positions : {1, 2, 5, 8})
      for (const std::size_t width : {1, 3, 8, 13}) {
        SCOPED_TRACE(std::to_string(tokens) + " tokens, width " + std::to_string(width));
        Network net(positions);
        const Table table = net.table(6, width);
        cross_entropy(affine(net.linear(tokens * width, 4), net.embed(table, tokens)));
        expect_agrees(net, kFew);
      }
}

TEST(NetworkOps, EmbedWithPositionsMatchesTwin) {
  expect_agrees_everywhere([](Network& net, std::size_t width) {
    const Table letters = net.table(11, width), places = net.table(net.positions(), width);
    custom_loss(net.embed(letters, places), log_cosh_loss);
  });
}

TEST(NetworkOps, EmbedBeforeLossMatchesTwin) {
  for (const std::size_t rows : {1, 2, 300}) {
    Network net(4);
    cross_entropy(net.embed(net.table(rows, 5), 2));
    expect_agrees(net);
  }
}

TEST(NetworkOps, EmbedFromLargestTableMatchesTwin) {
  Network net;
  mean_squared_error(net.embed(net.table(65536, 1)));
  const std::vector<double> x = random_parameters(net, 1);
  const std::vector<Token> token = {65535};
  const std::vector<double> target = {x.back() + 2};
  Example<double> example;
  example.tokens = token, example.targets = target;
  std::vector<double> gradient(x.size());
  Executor<double> executor(net);
  EXPECT_NEAR(executor.loss_and_gradient(
                  x, 1, [&](std::size_t) { return example; }, gradient),
              4, 1e-12);
  EXPECT_NEAR(gradient.back(), -4, 1e-12);
  EXPECT_EQ(largest(std::span(gradient).first(65535)), 0);
}

TEST(NetworkOps, SparseFeaturesMatchTwin) {
  for (const std::size_t in : {1, 2, 9, 40, 200})
    for (const std::size_t out : kWidths) {
      SCOPED_TRACE(std::to_string(in) + " features, width " + std::to_string(out));
      Network net;
      const Tensor x = net.affine(net.feature_linear(in, out));
      cross_entropy(affine(net.linear(out, 3), tanh(x)));
      expect_agrees(net, {.counts = {1, 3, 7}, .micro_batches = {1, 4, 0}});
    }
}

TEST(NetworkOps, SparseFeaturesBeforeLossMatchTwin) {
  Network net;
  cross_entropy(net.affine(net.feature_linear(30, 10)));
  expect_agrees(net, {.counts = {1, 2, 5, 16, 17}, .micro_batches = {1, 4, 16, 0}});
}

TEST(NetworkOps, CustomLossesWorkWithoutLabelsAndTargets) {
  Network net(2);
  custom_loss(affine(net.linear(3, 4), net.features(3)), log_cosh_loss);
  const std::vector<double> x = random_parameters(net, 1);
  const std::vector<double> features = {1, 2, 3, 4, 5, 6};
  Example<double> example;
  example.features = features;
  const LossAndGradient want = naive_loss_and_gradient(net, x, example);
  std::vector<double> gradient(x.size());
  Executor<double> executor(net);
  EXPECT_NEAR(executor.loss_and_gradient(
                  x, 1, [&](std::size_t) { return example; }, gradient),
              want.loss, 1e-12);
  EXPECT_EQ(
      compare<double>(net, gradient, want.gradient, allowed_errors<double>(net, want.gradient, {}, 1e-12)),
      "");
}

TEST(NetworkOps, CustomLossesMayHaveOtherNumbersOfTargets) {
  // There is one target per position for four outputs: it is compared with their sum.
  Network net(3);
  custom_loss(affine(net.linear(2, 4), net.features(2)),
              [](std::span<const double> output, std::size_t, std::span<const double> target,
                 std::span<double> derivative) {
                double miss = -target[0];
                for (const double y : output) miss += y;
                for (double& d : derivative) d = miss;
                return miss * miss / 2;
              });
  const std::vector<double> x = random_parameters(net, 1);
  const std::vector<double> features = {1, 2, 3, 4, 5, 6}, targets = {1, -1, 0.5};
  Example<double> example;
  example.features = features, example.targets = targets;
  const LossAndGradient want = naive_loss_and_gradient(net, x, example);
  std::vector<double> gradient(x.size());
  Executor<double> executor(net);
  EXPECT_NEAR(executor.loss_and_gradient(
                  x, 1, [&](std::size_t) { return example; }, gradient),
              want.loss, 1e-12);
  EXPECT_EQ(
      compare<double>(net, gradient, want.gradient, allowed_errors<double>(net, want.gradient, {}, 1e-12)),
      "");
}

}  // namespace
}  // namespace gradwire
