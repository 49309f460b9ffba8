// network_oracle(): the oracle of a program's network over samples in memory.
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/nn/network_oracle.h"
#include "gradwire/bad_input.h"
#include "tests/engine/nn/network_samples.h"
#include "tests/engine/nn/network_zoo.h"

namespace gradwire {
namespace {

// Returns the first `count` samples, one after another.
template <class Real>
NetworkSamples<Real> in_memory(const RandomSamples<Real>& samples, std::size_t count, bool sparse) {
  NetworkSamples<Real> all{.count = count};
  if (sparse) all.row_start.push_back(0);
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (std::size_t k = 0; k < count; ++k) {
    const Example<Real> e = samples[k];
    append(all.features, e.features);
    append(all.tokens, e.tokens);
    append(all.labels, e.labels);
    append(all.targets, e.targets);
    append(all.index, e.index);
    append(all.value, e.value);
    if (sparse) all.row_start.push_back(all.index.size());
  }
  return all;
}

template <class Real>
void expect_bits_of_executor(const Network& net, bool sparse = false) {
  constexpr std::size_t kCount = 23;
  const RandomSamples<Real> samples(net, kCount, 5);
  const auto oracle = network_oracle<Real>(net, in_memory(samples, kCount, sparse));
  ASSERT_EQ(oracle->dim(), net.dim());
  ASSERT_EQ(oracle->sample_count(), kCount);
  const std::vector<double> start = random_parameters(net, 3);
  const std::vector<Real> x(start.begin(), start.end());
  Executor<Real> executor(net);
  std::vector<Real> got(x.size()), want(x.size());
  const std::vector<std::uint32_t> batch = {22, 0, 7, 7};
  EXPECT_EQ(oracle->loss_and_gradient(x, {}, got),
            static_cast<Real>(executor.loss_and_gradient(x, kCount, samples.at(), want)));
  EXPECT_EQ(got, want);
  EXPECT_EQ(oracle->loss_and_gradient(x, batch, got),
            static_cast<Real>(executor.loss_and_gradient(
                x, batch.size(), [&](std::size_t k) { return samples[batch[k]]; }, want)));
  EXPECT_EQ(got, want);
}

TEST(NetworkMemory, HasTheBitsOfTheExecutor) {
  expect_bits_of_executor<float>(zoo_letters());
  expect_bits_of_executor<double>(zoo_letters());
  expect_bits_of_executor<float>(zoo_transformer(5, 6, 2));
  expect_bits_of_executor<double>(zoo_image());
  expect_bits_of_executor<float>(zoo_sparse(), true);
  expect_bits_of_executor<double>(zoo_sparse(), true);
  expect_bits_of_executor<double>(zoo_regression());
  expect_bits_of_executor<float>(zoo_shared());
}

// Softmax regression of two features, whose first class wins where the first feature is larger.
Network two_classes() {
  Network net;
  cross_entropy(affine(net.linear(2, 2, false), net.features(2)));
  return net;
}
NetworkSamples<double> three_points() {
  return {.count = 3, .features = {1, 0, 0, 1, 3, 2}, .labels = {0, 1, 1}};
}

TEST(NetworkMemory, CountsRightPredictionsOfTestSamples) {
  const std::vector<double> identity = {1, 0, 0, 1};
  EXPECT_FALSE(network_oracle<double>(two_classes(), three_points())->score(identity));
  const auto score =
      network_oracle<double>(two_classes(), three_points(), three_points())->score(identity).value();
  EXPECT_EQ(score.correct, 2u);
  EXPECT_EQ(score.tested, 3u);
}

TEST(NetworkMemory, AddsTheRegularizer) {
  const std::vector<double> x = {1, 2, -1, 0.5};
  std::vector<double> plain(4), regularized(4);
  const double loss = network_oracle<double>(two_classes(), three_points())->loss_and_gradient(x, {}, plain);
  EXPECT_NEAR(
      network_oracle<double>(two_classes(), three_points(), {}, 0.5)->loss_and_gradient(x, {}, regularized),
      loss + 0.25 * (1 + 4 + 1 + 0.25), 1e-14);
  for (std::size_t j = 0; j < 4; ++j) EXPECT_NEAR(regularized[j], plain[j] + 0.5 * x[j], 1e-14);
}

TEST(NetworkMemory, CopiesTheNetwork) {
  std::unique_ptr<Oracle<double>> oracle;
  {
    const Network net = two_classes();
    oracle = network_oracle<double>(net, three_points());
  }
  std::vector<double> gradient(4);
  EXPECT_NEAR(oracle->loss_and_gradient(std::vector<double>(4), {}, gradient), std::log(2.0), 1e-15);
}

template <class Real>
std::string error_of(const Network& net, NetworkSamples<Real> train, NetworkSamples<Real> test = {}) {
  try {
    network_oracle<Real>(net, std::move(train), std::move(test));
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

TEST(NetworkMemory, RejectsSamplesOfOtherShapes) {
  const auto error_with = [](const auto& change) {
    NetworkSamples<double> samples = three_points();
    change(samples);
    return error_of(two_classes(), samples);
  };
  using S = NetworkSamples<double>;
  EXPECT_EQ(error_with([](S&) {}), "");
  EXPECT_EQ(error_with([](S& s) { s.features.pop_back(); }),
            "the training samples: features has 5 numbers, but the network reads 2 for each of 3 samples");
  EXPECT_EQ(error_with([](S& s) { s.features.resize(9); }),
            "the training samples: features has 9 numbers, but the network reads 2 for each of 3 samples");
  EXPECT_EQ(error_with([](S& s) { s.features.clear(); }),
            "the training samples: features has 0 numbers, but the network reads 2 for each of 3 samples");
  EXPECT_EQ(error_with([](S& s) { s.labels = {1}; }),
            "the training samples: labels has 1 number, but the network reads 1 for each of 3 samples");
  EXPECT_EQ(error_with([](S& s) { s.labels[2] = 2; }),
            "the training samples: labels[2] is 2, but the network knows 0 to 1");
  EXPECT_EQ(error_with([](S& s) {
              s.tokens = {1, 2, 3};
            }),
            "the training samples: tokens has 3 numbers, but the network reads none; leave it empty");
  EXPECT_EQ(error_with([](S& s) {
              s.targets = {1, 2, 3};
            }),
            "the training samples: targets has 3 numbers, but the network reads none; leave it empty");
  EXPECT_EQ(error_with([](S& s) { s.row_start = {0}; }),
            "the training samples: row_start has 1 number, but the network reads none; leave it empty");
  EXPECT_EQ(error_with([](S& s) { s.count = 0; }),
            "the training samples: count is 0; it must be 1 to 4294967295");
  EXPECT_EQ(error_with([](S& s) { s.count = std::numeric_limits<std::size_t>::max(); }),
            "the training samples: count is 18446744073709551615; it must be 1 to 4294967295");
  EXPECT_EQ(error_of(two_classes(), NetworkSamples<double>{}),
            "the training samples: count is 0; it must be 1 to 4294967295");
}

TEST(NetworkMemory, RejectsTestSamplesThatDoNotFit) {
  NetworkSamples<double> test = three_points();
  test.labels[0] = 9;
  EXPECT_EQ(error_of(two_classes(), three_points(), test),
            "the test samples: labels[0] is 9, but the network knows 0 to 1");
  test.count = 0;
  EXPECT_EQ(error_of(two_classes(), three_points(), test),
            "the test samples: count is 0; it must be 1 to 4294967295");
  Network line;
  mean_squared_error(affine(line.linear(1, 1), line.features(1)));
  const NetworkSamples<float> point{.count = 1, .features = {1}, .targets = {2}};
  EXPECT_EQ(error_of(line, point), "");
  EXPECT_EQ(error_of(line, point, point),
            "the test samples: labels is empty, but accuracy needs a label for each position");
}

TEST(NetworkMemory, RejectsTokensAndTargetsOutOfRange) {
  Network net(2);
  mean_squared_error(net.embed(net.table(5, 3), 2));
  NetworkSamples<float> s{.count = 1, .tokens = {0, 4, 2, 1}, .targets = std::vector<float>(12)};
  EXPECT_EQ(error_of(net, s), "");
  s.tokens[3] = 5;
  EXPECT_EQ(error_of(net, s), "the training samples: tokens[3] is 5, but the network knows 0 to 4");
  s.tokens[3] = 0;
  s.targets.pop_back();
  EXPECT_EQ(error_of(net, s),
            "the training samples: targets has 11 numbers, but the network reads 12 for each of 1 sample");
  Network own(2);
  custom_loss(own.features(1), [](auto, auto, auto, std::span<double> slope) { return slope[0] = 0; });
  NetworkSamples<float> free{.count = 2, .features = std::vector<float>(4), .targets = std::vector<float>(8)};
  EXPECT_EQ(error_of(own, free), "");
  free.targets.resize(6);
  EXPECT_EQ(
      error_of(own, free),
      "the training samples: targets has 6 numbers, which do not divide among 2 samples of 2 positions");
}

TEST(NetworkMemory, RejectsSparseRowsThatDoNotFit) {
  Network net;
  cross_entropy(net.affine(net.feature_linear(4, 2)));
  using S = NetworkSamples<double>;
  const S good{.count = 2, .labels = {0, 1}, .row_start = {0, 2, 3}, .index = {0, 3, 1}, .value = {1, 2, 3}};
  const auto error_with = [&](const auto& change) {
    S samples = good;
    change(samples);
    return error_of(net, samples);
  };
  EXPECT_EQ(error_with([](S&) {}), "");
  EXPECT_EQ(error_with([](S& s) { s.index[1] = 4; }),
            "the training samples: index[1] is 4, but the network knows 0 to 3");
  EXPECT_EQ(error_with([](S& s) { s.value.pop_back(); }),
            "the training samples: value has 2 numbers, but index has 3");
  EXPECT_EQ(error_with([](S& s) { s.row_start.pop_back(); }),
            "the training samples: row_start has 2 numbers, but needs 3 for 2 samples");
  EXPECT_EQ(error_with([](S& s) { s.row_start[1] = 4; }),
            "the training samples: row_start[2] is 3 after 4; it must not descend");
  EXPECT_EQ(
      error_with([](S& s) { s.row_start[2] = 2; }),
      "the training samples: row_start begins with 0 and ends with 2; it must begin with 0 and end with "
      "the length of index, 3");
}

TEST(NetworkMemory, RejectsMisuse) {
  Network none;
  affine(none.linear(2, 2), none.features(2));
  EXPECT_THROW(network_oracle<double>(none, three_points()), std::logic_error);
  for (const double l2 :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(network_oracle<double>(two_classes(), three_points(), {}, l2), std::logic_error);
  Network small = two_classes();
  small.limit_activations(ActivationBudget(1));
  EXPECT_THROW(network_oracle<double>(small, three_points()), BudgetTooSmall);
}

}  // namespace
}  // namespace gradwire
