// LeNet learns handwritten digits from 9,000 images, and then recognizes 97 % of 1,000 test images.
#include <gtest/gtest.h>
#include <numeric>

#include "base/aligned.h"
#include "base/random.h"
#include "engine/data/readers/source.h"
#include "engine/nn/models/lenet.h"
#include "engine/nn/models/samples.h"
#include "engine/nn/network_oracle.h"

namespace gradwire {
namespace {

// Expects at least `right` right answers for 1,000 images after `epochs` epochs.
void expect_learnt(int epochs, std::uint64_t right) {
  const std::filesystem::path folder = std::filesystem::path(GRADWIRE_TEST_DATA) / "mnist";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no MNIST in " << folder;
  const Dataset all = read_source("idx:" + folder.string(), {}, {});
  ASSERT_EQ(all.rows(), 10'000u);
  std::vector<std::uint32_t> rows(all.rows());
  std::iota(rows.begin(), rows.end(), 0);
  Random random(1, "lenet test");
  random.shuffle(std::span(rows));
  const auto labels = distinct_labels(all);
  const auto part = [&](std::size_t first, std::size_t count) {
    return std::make_unique<DenseSamples<float>>(select_rows(all, std::span(rows).subspan(first, count)),
                                                 all.columns, labels);
  };
  const Network network = lenet();
  NetworkOracle<float> oracle(network, part(0, 9'000), part(9'000, 1'000));

  const std::vector<double> start = network.start(1);
  AlignedVector<float> x(start.begin(), start.end()), gradient(x.size()), momentum(x.size());
  std::vector<std::uint32_t> order(9'000);
  std::iota(order.begin(), order.end(), 0);
  constexpr std::size_t kBatch = 32;
  constexpr float kStep = 0.02f, kMomentum = 0.9f;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    random.shuffle(std::span(order));
    for (std::size_t k = 0; k + kBatch <= order.size(); k += kBatch) {
      oracle.loss_and_gradient(x, Batch(order).subspan(k, kBatch), gradient);
      for (std::size_t j = 0; j < x.size(); ++j) {
        momentum[j] = kMomentum * momentum[j] + gradient[j];
        x[j] -= kStep * momentum[j];
      }
    }
  }
  const auto score = oracle.score(x);
  ASSERT_TRUE(score.has_value());
  EXPECT_EQ(score->tested, 1'000u);
  EXPECT_GE(score->correct, right);
}

TEST(Lenet, Reaches90PercentOnMnistInOneEpoch) { expect_learnt(1, 900); }
TEST(Lenet, SlowReaches97PercentOnMnistInSixEpochs) { expect_learnt(6, 970); }

}  // namespace
}  // namespace gradwire
