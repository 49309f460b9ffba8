// An executor allocates when it is made, and never again for gradients, losses and outputs.
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "engine/nn/models/mlp.h"
#include "engine/nn/models/samples.h"
#include "engine/nn/network_oracle.h"
#include "tests/engine/nn/network_checks.h"
#include "tests/engine/nn/network_zoo.h"
#include "tests/support/count_allocations.h"

namespace gradwire {
namespace {

template <class Real>
void expect_no_allocations(Executor<Real>& executor, const NamedNetwork& each) {
  constexpr std::size_t kCount = 37;
  const RandomSamples<Real> samples(each.network, kCount, 1);
  const typename Executor<Real>::ExampleAt at = samples.at();
  const std::vector<double> point = random_parameters(each.network, 1);
  std::vector<Real> x(point.begin(), point.end()), gradient(x.size());
  std::size_t outputs = 0;
  const typename Executor<Real>::TakeOutputs take = [&](std::size_t, std::span<const Real> y) {
    outputs += y.size();
  };

  allocations::reset();
  for (const std::size_t count : {std::size_t{1}, kCount, std::size_t{16}}) {
    executor.loss_and_gradient(x, count, at, gradient);
    executor.loss(x, count, at);
  }
  EXPECT_EQ(allocations::count, 0u) << "loss and gradient";

  allocations::reset();
  executor.outputs(x, kCount, at, take);
  EXPECT_EQ(allocations::count, 0u) << "outputs";
  EXPECT_EQ(outputs, kCount * executor.positions() * executor.output_channels());

  // The first step over several microbatches makes an array for the gradient.
  executor.descend(x, kCount, at, Real(1e-3));
  allocations::reset();
  for (const std::size_t count : {std::size_t{1}, kCount, std::size_t{16}})
    executor.descend(x, count, at, Real(1e-3));
  EXPECT_EQ(allocations::count, 0u) << "a step";

  // The first call of each operation that needs more than a gradient also allocates.
  const std::function<double(double)> factor = [](double) { return 0.5; };
  for (const bool first : {true, false}) {
    allocations::reset();
    executor.compute(x, kCount, at, gradient, {.wanted = Coordinates::cyclic(0, 2, x.size())});
    executor.directional(x, gradient, kCount, at);
    if (executor.knows_sample_norms()) executor.scaled_gradients(x, kCount, at, factor, gradient);
    if (first) continue;
    EXPECT_EQ(allocations::count, 0u) << "coordinates, a direction, scaled gradients";
  }
}

template <class Real>
void expect_no_allocations(const NamedNetwork& each) {
  for (const Kernels<Real>* kernels : available_kernels<Real>())
    for (const std::size_t micro_batch : {0, 1, 5, 16}) {
      SCOPED_TRACE(each.name + ", " + kernels->name + ", microbatch " + std::to_string(micro_batch));
      allocations::reset();
      Executor<Real> executor(each.network, micro_batch, kernels);
      EXPECT_GT(allocations::count, 0u);
      expect_no_allocations(executor, each);
    }
}

TEST(NetworkAllocations, HappenOnlyAtConstruction) {
  for (const NamedNetwork& each : network_zoo()) {
    expect_no_allocations<float>(each);
    expect_no_allocations<double>(each);
  }
}

TEST(NetworkAllocations, ArenaUsesCallersMemory) {
  constexpr std::size_t kCount = 21;
  for (const NamedNetwork& each : network_zoo()) {
    SCOPED_TRACE(each.name);
    const RandomSamples<float> samples(each.network, kCount, 1);
    const std::vector<double> point = random_parameters(each.network, 1);
    const std::vector<float> x(point.begin(), point.end());
    std::vector<float> expected(x.size()), gradient(x.size());
    Executor<float> plain(each.network);
    const double loss = plain.loss_and_gradient(x, kCount, samples.at(), expected);
    const std::size_t bytes = Executor<float>::arena_bytes_of(each.network);
    // The memory starts after other memory, at an odd address. The byte after it must not change.
    std::vector<std::byte> memory(bytes + 2, std::byte{0x5a});
    Executor<float> executor(each.network, std::span(memory).subspan(1, bytes));
    EXPECT_EQ(executor.loss_and_gradient(x, kCount, samples.at(), gradient), loss);
    EXPECT_EQ(gradient, expected);
    EXPECT_EQ(memory.front(), std::byte{0x5a});
    EXPECT_EQ(memory.back(), std::byte{0x5a});
    EXPECT_THROW(Executor<float>(each.network, std::span(memory).first(bytes / 2)), std::logic_error);
  }
}

TEST(NetworkAllocations, HappenOnlyAtConstructionInCallersMemory) {
  for (const NamedNetwork& each : network_zoo()) {
    SCOPED_TRACE(each.name);
    std::vector<std::byte> memory(Executor<double>::arena_bytes_of(each.network));
    allocations::reset();
    const std::size_t before = allocations::live;
    Executor<double> executor(each.network, memory);
    EXPECT_LT(allocations::live - before, 64'000u) << "the description of the network, and no arena";
    expect_no_allocations(executor, each);
  }
}

// Data with few zeros take another path than data with many.
TEST(NetworkAllocations, OracleAllocatesOnlyAtFirstGradient) {
  constexpr std::size_t kFeatures = 60;
  for (const std::size_t every : {1, 5}) {
    Dataset data;
    data.columns = kFeatures;
    for (std::size_t r = 0; r < 23; ++r) {
      for (std::size_t k = r % every; k < kFeatures; k += every) {
        data.column.push_back(static_cast<std::uint32_t>(k));
        data.value.push_back(0.5);
      }
      data.row_start.push_back(data.column.size());
      data.label.push_back(static_cast<double>(r % 3));
    }
    const std::vector<double> labels = {0, 1, 2};
    for (const std::vector<std::uint32_t>& hidden : {std::vector<std::uint32_t>{}, {17}, {9, 4, 8}}) {
      NetworkOracle<float> oracle(mlp({kFeatures, hidden, 3}),
                                  std::make_unique<SparseSamples<float>>(data, kFeatures, labels));
      const std::vector<float> x(oracle.dim(), 0.1f);
      std::vector<float> gradient(oracle.dim());
      oracle.loss_and_gradient(x, {}, gradient);
      allocations::reset();
      oracle.loss_and_gradient(x, {}, gradient);
      EXPECT_EQ(allocations::count, 0u) << "every feature number " << every;
    }
  }
}

TEST(NetworkAllocations, FusedStepHoldsNoGradient) {
  Network net;
  cross_entropy(affine(net.linear(1000, 300), net.features(1000)));
  const RandomSamples<float> samples(net, 1, 1);
  const Executor<float>::ExampleAt at = samples.at();
  std::vector<float> x(net.dim());
  Executor<float> executor(net, 16);  // the default takes more memory for large batches
  allocations::reset();
  executor.descend(x, 1, at, 0.1f);
  EXPECT_EQ(allocations::count, 0u);
  EXPECT_LT(executor.arena_bytes(), net.dim() * sizeof(float));
}

}  // namespace
}  // namespace gradwire
