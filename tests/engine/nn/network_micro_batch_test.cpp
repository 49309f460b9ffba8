// Microbatches, batches and kernels. The result equals the twin's and always has the same bits, however the
// samples of a call are cut into microbatches.
#include <array>
#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <span>
#include <vector>

#include "tests/engine/nn/network_checks.h"
#include "tests/engine/nn/network_zoo.h"

namespace gradwire {
namespace {

TEST(NetworkBlocks, AgreeWithTwinForAllNumbersOfSamples) {
  for (const NamedNetwork& each : network_zoo()) {
    SCOPED_TRACE(each.name);
    expect_agrees(each.network, {.counts = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63},
                                 .micro_batches = {0, 1, 3, 8, 16}});
  }
}

TEST(NetworkBlocks, AgreeWithTwinForAllSizes) {
  std::vector<std::size_t> micro_batches(16);
  std::iota(micro_batches.begin(), micro_batches.end(), 1);
  for (const NamedNetwork& each : network_zoo()) {
    SCOPED_TRACE(each.name);
    expect_agrees(each.network, {.counts = {1, 6, 17}, .micro_batches = micro_batches});
  }
}

template <class Real>
struct Result {
  double loss = 0;
  std::vector<Real> gradient;

  bool operator==(const Result& other) const {
    return loss == other.loss && gradient.size() == other.gradient.size() &&
           std::memcmp(gradient.data(), other.gradient.data(), gradient.size() * sizeof(Real)) == 0;
  }
};

template <class Real>
class NetworkBits : public ::testing::Test {
 public:
  static Result<Real> run(Executor<Real>& executor, const std::vector<Real>& x,
                          const RandomSamples<Real>& samples, std::size_t count, std::size_t first = 0) {
    Result<Real> result{0, std::vector<Real>(x.size(), Real(-1))};
    result.loss = executor.loss_and_gradient(
        x, count, [&](std::size_t k) { return samples[first + k]; }, result.gradient);
    return result;
  }

  static std::vector<Real> point(const Network& network) {
    const std::vector<double> x = random_parameters(network, 1);
    return {x.begin(), x.end()};
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NetworkBits, Reals);

TYPED_TEST(NetworkBits, AreTheSameEachTime) {
  using Real = TypeParam;
  for (const NamedNetwork& each : network_zoo()) {
    const RandomSamples<Real> samples(each.network, 21, 1);
    const std::vector<Real> x = this->point(each.network);
    for (const Kernels<Real>* kernels : available_kernels<Real>()) {
      Executor<Real> executor(each.network, 0, kernels);
      const Result<Real> first = this->run(executor, x, samples, 13);
      for (int call = 0; call < 10; ++call) {
        this->run(executor, x, samples, 1 + call % 3, 13);  // leaves other numbers in the executor's memory
        EXPECT_TRUE(this->run(executor, x, samples, 13) == first) << each.name << ", " << kernels->name;
      }
      Executor<Real> another(each.network, 0, kernels);
      EXPECT_TRUE(this->run(another, x, samples, 13) == first) << each.name << ", " << kernels->name;
      const double loss = another.loss(x, 13, samples.at());
      EXPECT_EQ(loss, first.loss) << each.name << ", " << kernels->name;
    }
  }
}

TYPED_TEST(NetworkBits, LossDoesNotDependOnRequestedDerivatives) {
  using Real = TypeParam;
  for (const NamedNetwork& each : network_zoo()) {
    const RandomSamples<Real> samples(each.network, 7, 2);
    std::vector<Real> x = this->point(each.network);
    Executor<Real> executor(each.network);
    const double loss = this->run(executor, x, samples, 7).loss;
    EXPECT_EQ(executor.loss(x, 7, samples.at()), loss) << each.name;
    EXPECT_EQ(executor.descend(x, 7, samples.at(), Real(0.1)), loss) << each.name;
  }
}

// The mean over a batch equals the mean of its samples one at a time, in executors of any microbatch size.
TYPED_TEST(NetworkBits, BatchIsMeanOfItsSamples) {
  using Real = TypeParam;
  constexpr std::size_t kCount = 11;
  for (const NamedNetwork& each : network_zoo()) {
    const RandomSamples<Real> samples(each.network, kCount, 3);
    const std::vector<Real> x = this->point(each.network);
    for (const std::size_t micro_batch : {1, 4, 16}) {
      Executor<Real> executor(each.network, micro_batch);
      std::vector<double> mean(x.size());
      for (std::size_t k = 0; k < kCount; ++k) {
        const Result<Real> one = this->run(executor, x, samples, 1, k);
        for (std::size_t j = 0; j < mean.size(); ++j)
          mean[j] += static_cast<double>(one.gradient[j]) / kCount;
      }
      const Result<Real> all = this->run(executor, x, samples, kCount);
      const std::vector<double> allowed =
          allowed_errors<double>(each.network, mean, {}, sizeof(Real) == sizeof(float) ? 1e-5 : 1e-13);
      EXPECT_EQ(compare<Real>(each.network, all.gradient, mean, allowed), "")
          << each.name << ", microbatch " << micro_batch;
    }
  }
}

TEST(NetworkExecutor, MovesAndKeepsItsNetwork) {
  auto network = std::make_unique<Network>(zoo_letters());
  const RandomSamples<double> samples(*network, 3, 1);
  const std::vector<double> x = random_parameters(*network, 1);
  Executor<double> executor(*network, 2);
  const double loss = executor.loss(x, 3, samples.at());
  network.reset();
  Executor<double> moved(std::move(executor));
  EXPECT_EQ(moved.loss(x, 3, samples.at()), loss);
  Executor<double> assigned(zoo_sparse());
  assigned = std::move(moved);
  EXPECT_EQ(assigned.loss(x, 3, samples.at()), loss);
  EXPECT_EQ(assigned.micro_batch(), 2u);
  EXPECT_EQ(assigned.dim(), x.size());
  EXPECT_EQ(assigned.positions(), 1u);
  EXPECT_EQ(assigned.output_channels(), 9u);
}

TEST(NetworkExecutor, AsksForSamplesInAscendingOrder) {
  const Network network = zoo_letters();
  const RandomSamples<double> samples(network, 40, 1);
  const std::vector<double> x = random_parameters(network, 1);
  Executor<double> executor(network, 4);
  std::size_t last = 0;
  std::vector<int> asked(40);
  executor.loss(x, 40, [&](std::size_t k) {
    EXPECT_GE(k, last);
    last = k;
    ++asked.at(k);
    return samples[k];
  });
  for (const int times : asked) EXPECT_GE(times, 1);
}

TEST(NetworkExecutor, NeedsMemoryOfOneMicroBatchForAnyBatch) {
  const Network network = zoo_transformer(8, 24, 6);
  Executor<float> one(network, 1), eight(network, 8);
  EXPECT_GT(one.arena_bytes(), 8u * 24 * sizeof(float));
  EXPECT_LT(one.arena_bytes(), eight.arena_bytes());
  EXPECT_LT(eight.arena_bytes(), 16 * one.arena_bytes());
}

}  // namespace
}  // namespace gradwire
