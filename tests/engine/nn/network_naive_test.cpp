// Tests of the naive twin of the executor. Its values are compared with hand-computed numbers, and its
// gradients with differences of its values.
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <span>
#include <vector>

#include "tests/engine/nn/naive_network.h"
#include "tests/engine/nn/network_samples.h"
#include "tests/engine/nn/network_zoo.h"

namespace gradwire {
namespace {

Example<double> with_features(std::span<const double> features) {
  Example<double> example;
  example.features = features;
  return example;
}
Example<double> with_tokens(std::span<const Token> tokens) {
  Example<double> example;
  example.tokens = tokens;
  return example;
}

std::vector<double> outputs(const Network& network, std::span<const double> x,
                            const Example<double>& example) {
  return NaiveNetwork<double, double>(network, x, example).output();
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-14) << "number " << i;
}

// Returns a central difference of fourth order in h.
double difference(const Network& network, std::vector<double> x, const Example<double>& example,
                  std::size_t j) {
  const double h = 1e-3, middle = x[j];
  const auto at = [&](double distance) {
    x[j] = middle + distance;
    return naive_loss<double>(network, x, example);
  };
  return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
}

TEST(NaiveNetwork, MapsVectorsLikeHandComputation) {
  Network net;
  const Linear layer = net.linear(2, 3);
  mean_squared_error(affine(layer, net.features(2)));
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 10, 20, 30}, features = {7, -1},
                            targets = {15, 37, 59 + 3};
  Example<double> example = with_features(features);
  example.targets = targets;
  expect_near(outputs(net, x, example), {15, 37, 59});
  EXPECT_NEAR((naive_loss<double>(net, x, example)), 3, 1e-14);
}

TEST(NaiveNetwork, ReadsSparseFeaturesLikeHandComputation) {
  Network net;
  mean_squared_error(net.affine(net.feature_linear(3, 2)));
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 10, 20}, value = {2, -1};
  const std::vector<std::uint32_t> index = {0, 2};
  Example<double> example;
  example.index = index, example.value = value;
  expect_near(outputs(net, x, example), {10 + 2 - 5, 20 + 4 - 6});
}

TEST(NaiveNetwork, EmbedsLikeHandComputation) {
  Network net(2);
  const Table table = net.table(3, 2);
  mean_squared_error(net.embed(table, 2));
  const std::vector<double> x = {1, 2, 3, 4, 5, 6};
  const std::vector<Token> tokens = {2, 0, 1, 1};
  expect_near(outputs(net, x, with_tokens(tokens)), {5, 6, 1, 2, 3, 4, 3, 4});

  Network with_positions(2);
  const Table letters = with_positions.table(3, 2), places = with_positions.table(2, 2);
  mean_squared_error(with_positions.embed(letters, places));
  const std::vector<double> y = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40};
  const std::vector<Token> two = {2, 0};
  expect_near(outputs(with_positions, y, with_tokens(two)), {15, 26, 31, 42});
}

TEST(NaiveNetwork, ComputesActivationsLikeHandComputation) {
  const std::vector<double> features = {-2, 0, 0.5};
  const auto of = [&](Activation function) {
    Network net;
    mean_squared_error(activation(function, net.features(3)));
    return outputs(net, {}, with_features(features));
  };
  expect_near(of(Activation::kRelu), {0, 0, 0.5});
  expect_near(of(Activation::kTanh), {-0.9640275800758169, 0, 0.46211715726000975});
  expect_near(of(Activation::kSigmoid), {0.11920292202211755, 0.5, 0.6224593312018546});
  expect_near(of(Activation::kGelu), {-0.04540230591222494, 0, 0.34571400982514394});
}

TEST(NaiveNetwork, NormalizesLikeHandComputation) {
  Network net;
  mean_squared_error(norm(net.layer_norm(4, 0.75), net.features(4)));
  const std::vector<double> x = {1, 1, 2, 1, 0, 0, 0, 5}, features = {1, 2, 3, 4};  // variance 1.25
  const double root = std::sqrt(2.0);
  expect_near(outputs(net, x, with_features(features)), {-1.5 / root, -0.5 / root, 1 / root, 5 + 1.5 / root});
}

TEST(NaiveNetwork, AttendsLikeHandComputation) {
  for (const bool causal : {true, false}) {
    Network net(2);
    const Tensor u = net.features(4);
    mean_squared_error(attention(u, u, u, 1, causal));
    const std::vector<double> features = {1, 0, 0, 0, 0, 2, 0, 0};
    // Scores of a position with itself: 1/2 and 2; with the other: 0.
    const double first = std::exp(0.5) / (std::exp(0.5) + 1), second = std::exp(2) / (std::exp(2) + 1);
    std::vector<double> want = {first, 2 - 2 * first, 0, 0, 1 - second, 2 * second, 0, 0};
    if (causal) want[0] = 1, want[1] = 0;
    expect_near(outputs(net, {}, with_features(features)), want);
  }
}

TEST(NaiveNetwork, AttendsInSlicesOfChannels) {
  Network net(2);
  const Tensor u = net.features(2);
  mean_squared_error(attention(u, u, u, 2));
  const std::vector<double> features = {1, 3, 2, 4};
  const double a = std::exp(4) / (std::exp(4) + std::exp(2)),
               b = std::exp(16) / (std::exp(16) + std::exp(12));
  expect_near(outputs(net, {}, with_features(features)), {1, 3, 2 * a + 1 * (1 - a), 4 * b + 3 * (1 - b)});
}

TEST(NaiveNetwork, ConvolvesLikeHandComputation) {
  Network net;
  const Convolution layer = net.convolution(1, 1, 2, 1);
  mean_squared_error(convolve(layer, net.features(TensorShape{1, 2, 2})));
  const std::vector<double> x = {1, 10, 100, 1000, 0.5}, features = {1, 2, 3, 4};
  expect_near(outputs(net, x, with_features(features)),
              {1000.5, 2100.5, 200.5, 3010.5, 4321.5, 402.5, 30.5, 43.5, 4.5});
}

TEST(NaiveNetwork, PoolsLikeHandComputation) {
  const std::vector<double> features = {1, 2, 30, 4, 5, 60, 7, 8, 90, 10, 11, 12, 13, 14, 15};  // 3 x 5
  for (const bool maximum : {true, false}) {
    Network net;
    const Tensor image = net.features(TensorShape{1, 3, 5});
    mean_squared_error(maximum ? max_pool(image, 2) : average_pool(image, 2));
    expect_near(outputs(net, {}, with_features(features)),
                maximum ? std::vector<double>{60, 90} : std::vector<double>{17.5, 33});
  }
}

TEST(NaiveNetwork, AveragesPositionsLikeHandComputation) {
  Network net(2);
  const Tensor x = net.features(2);
  mean_squared_error(x * mean_over_positions(x));
  const std::vector<double> features = {1, 2, 3, 10};
  expect_near(outputs(net, {}, with_features(features)), {2, 12, 6, 60});
}

TEST(NaiveNetwork, ComputesLossesLikeHandComputation) {
  Network net(2);
  cross_entropy(net.features(3));
  const std::vector<double> features = {0, 0, 0, std::log(2.0), 0, 0};
  const std::vector<Token> labels = {1, 0};
  Example<double> example = with_features(features);
  example.labels = labels;
  EXPECT_NEAR((naive_loss<double>(net, {}, example)), (std::log(3.0) + std::log(2.0)) / 2, 1e-15);

  Network own(2);
  const Table table = own.table(2, 2);
  custom_loss(own.embed(table), [](std::span<const double> output, std::size_t label,
                                   std::span<const double> target, std::span<double> derivative) {
    derivative[0] = target[0];
    derivative[1] = static_cast<double>(label);
    return target[0] * output[0] + static_cast<double>(label) * output[1];
  });
  const std::vector<double> x = {1, 2, 3, 4}, targets = {10, 20};
  const std::vector<Token> tokens = {1, 0};
  Example<double> pair = with_tokens(tokens);
  pair.labels = labels, pair.targets = targets;
  const LossAndGradient result = naive_loss_and_gradient(own, x, pair);
  EXPECT_NEAR(result.loss, (30 + 4 + 20 + 0) / 2.0, 1e-14);
  expect_near(result.gradient, {10, 0, 5, 0.5});
}

TEST(NaiveNetwork, GradientMatchesDifferencesOfValues) {
  for (const NamedNetwork& each : network_zoo()) {
    const std::vector<double> x = random_parameters(each.network, 3);
    const RandomSamples<double> samples(each.network, 3, 3);
    const Example<double> example = samples[1];
    const LossAndGradient result = naive_loss_and_gradient(each.network, x, example);
    EXPECT_NEAR(result.loss, (naive_loss<double>(each.network, x, example)), 1e-13) << each.name;
    for (std::size_t j = 0; j < x.size(); j += 1 + x.size() / 50)
      EXPECT_NEAR(result.gradient[j], difference(each.network, x, example, j), 1e-8)
          << each.name << ", coordinate " << j;
  }
}

}  // namespace
}  // namespace gradwire
