// Activations within a memory budget. Rematerialization gives the same bits in every optional operation of an
// oracle, and the arena is not larger than the budget.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "engine/nn/executor.h"
#include "engine/nn/models/gpt.h"
#include "engine/nn/network_oracle.h"
#include "engine/nn/plan.h"
#include "tests/engine/capability_checks.h"
#include "tests/engine/nn/network_samples.h"
#include "tests/engine/nn/network_zoo.h"

namespace gradwire {
namespace {

Network with_budget(Network network, ActivationBudget budget) {
  network.limit_activations(budget);
  return network;
}

// Returns the zoo, deeper networks, and one whose first values are read at every depth.
std::vector<NamedNetwork> networks_to_fit() {
  std::vector<NamedNetwork> all = network_zoo();
  all.push_back({"gpt", gpt({.vocabulary = 9, .context = 5, .width = 6, .layers = 7, .heads = 2})});
  Network chain;
  Tensor h = affine(chain.linear(7, 30), chain.features(7));
  for (std::size_t k = 0; k < 12; ++k) h = tanh(affine(chain.linear(30 - 2 * k, 28 - 2 * k), h));
  cross_entropy(h);
  all.push_back({"funnel", chain});
  Network skips;
  const Tensor data = skips.features(6);
  Tensor first = gelu(affine(skips.linear(6, 6), data)), x = first;
  for (int k = 0; k < 6; ++k) x = sigmoid(affine(skips.linear(6, 6), x + data)) * first + x;
  mean_squared_error(x);
  all.push_back({"skips", skips});
  return all;
}

// Returns budgets from the least to one that holds all activations.
template <class Real>
std::vector<std::uint64_t> budgets(const Network& network, std::size_t micro_batch) {
  std::uint64_t least = 0;
  try {
    const Executor<Real> executor(with_budget(network, ActivationBudget(1)), micro_batch);
  } catch (const BudgetTooSmall& error) {
    least = error.least();
  }
  EXPECT_GT(least, 1u);
  Network whole = network;
  whole.limit_activations({});
  const std::uint64_t all = Executor<Real>::arena_bytes_of(whole, micro_batch);
  EXPECT_LE(least, all);
  return {least, least + (all - least) / 4, least + (all - least) / 2, std::max(all, least)};
}

template <class Real>
struct Pass {
  double loss;
  std::vector<Real> gradient;
  bool operator==(const Pass&) const = default;
};

template <class Real>
Pass<Real> pass_of(Executor<Real>& executor, const std::vector<Real>& x, std::size_t count,
                   const RandomSamples<Real>& samples) {
  Pass<Real> pass{0, std::vector<Real>(x.size())};
  pass.loss = executor.loss_and_gradient(x, count, samples.at(), pass.gradient);
  return pass;
}

template <class Real>
void expect_same_bits(const NamedNetwork& each, std::size_t count, std::size_t micro_batch) {
  SCOPED_TRACE(each.name + ", " + std::to_string(count) + " samples in microbatches of " +
               std::to_string(micro_batch));
  const RandomSamples<Real> samples(each.network, count, 1);
  const std::vector<double> point = random_parameters(each.network, 1);
  const std::vector<Real> x(point.begin(), point.end());
  Executor<Real> plain(each.network, micro_batch);
  const Pass<Real> expected = pass_of(plain, x, count, samples);
  std::vector<Real> stepped = x;
  plain.descend(stepped, count, samples.at(), Real(1) / 64);
  std::vector<ActivationBudget> all = {ActivationBudget::sqrt()};
  for (const std::uint64_t bytes : budgets<Real>(each.network, micro_batch)) all.emplace_back(bytes);
  for (const ActivationBudget budget : all) {
    SCOPED_TRACE("budget " + std::to_string(budget.bytes()));
    Executor<Real> executor(with_budget(each.network, budget), micro_batch);
    EXPECT_EQ(executor.micro_batch(), plain.micro_batch());
    if (!budget.is_sqrt()) {
      EXPECT_LE(executor.arena_bytes(), budget.bytes());
    }
    EXPECT_EQ(pass_of(executor, x, count, samples), expected);
    EXPECT_EQ(executor.loss(x, count, samples.at()), expected.loss);
    EXPECT_EQ(pass_of(executor, x, count, samples), expected) << "the second time";
    std::vector<Real> fused = x;
    EXPECT_EQ(executor.descend(fused, count, samples.at(), Real(1) / 64), expected.loss);
    EXPECT_EQ(fused, stepped);
  }
}

TEST(ActivationBudget, KeepsEveryBitOfGradientsLossesAndSteps) {
  for (const NamedNetwork& each : networks_to_fit())
    for (const std::size_t count : {1, 19})
      for (const std::size_t micro_batch : {0, 1, 16}) {
        expect_same_bits<float>(each, count, micro_batch);
        expect_same_bits<double>(each, count, micro_batch);
      }
}

TEST(ActivationBudget, KeepsEveryBitOfGradientsFromBFloat16Activations) {
  for (NamedNetwork& each : networks_to_fit()) {
    each.network.keep_activations(KeptActivations::kBFloat16);
    expect_same_bits<float>(each, 19, 0);
    expect_same_bits<double>(each, 5, 0);
  }
}

TEST(ActivationBudget, KeepsOptionalOperationsOfOracle) {
  for (const NamedNetwork& each : networks_to_fit())
    for (const KeptActivations kept : {KeptActivations::kExact, KeptActivations::kBFloat16}) {
      if (kept == KeptActivations::kBFloat16 && each.name != "skips" && each.name != "gpt") continue;
      SCOPED_TRACE(each.name + (kept == KeptActivations::kExact ? "" : " in bfloat16"));
      Network network = each.network;
      network.limit_activations(ActivationBudget(budgets<double>(network, 0)[1]));
      NetworkOracle<double> oracle(network, std::make_unique<DrawnExamples<double>>(network, 19));
      const std::vector<double> x = random_parameters(network, 1);
      const std::vector<std::uint32_t> one = {3}, some = {4, 2, 2, 11, 18};
      for (const std::vector<std::uint32_t>& batch : {std::vector<std::uint32_t>{}, one, some})
        expect_capabilities<double>(oracle, x, batch, 1e-12);
    }
}

// Gradients along random paths, derivatives in a direction and clipped gradients have the bits of a network
// without a budget.
TEST(ActivationBudget, KeepsEveryBitOfRandomPathsAndDirections) {
  for (NamedNetwork& each : networks_to_fit())
    for (const KeptActivations kept : {KeptActivations::kExact, KeptActivations::kBFloat16}) {
      SCOPED_TRACE(each.name + (kept == KeptActivations::kExact ? "" : " in bfloat16"));
      each.network.keep_activations(kept);
      const RandomSamples<double> samples(each.network, 21, 1);
      const std::vector<double> x = random_parameters(each.network, 1),
                                v = random_parameters(each.network, 2);
      std::vector<double> expected(x.size()), got(x.size());
      Executor<double> plain(each.network),
          executor(with_budget(each.network, ActivationBudget(budgets<double>(each.network, 0)[0])));
      for (const double share : {0.5, 1.0}) {
        const GradientOptions options{.paths = {.share = share, .key = 7}};
        const auto loss = plain.compute(x, 21, samples.at(), expected, options);
        EXPECT_EQ(executor.compute(x, 21, samples.at(), got, options), loss);
        EXPECT_EQ(got, expected);
      }
      const Directional<double> along = plain.directional(x, v, 21, samples.at());
      const Directional<double> same = executor.directional(x, v, 21, samples.at());
      EXPECT_EQ(same.loss, along.loss);
      EXPECT_EQ(same.derivative, along.derivative);
    }
}

TEST(ActivationBudget, ClipsEachSampleToTheSameBits) {
  const Network network = zoo_transformer(5, 6, 2);
  const auto examples = [&] { return std::make_unique<DrawnExamples<double>>(network, 9); };
  NetworkOracle<double> plain(network, examples()),
      oracle(with_budget(network, ActivationBudget::sqrt()), examples());
  EXPECT_TRUE(plain.executor().knows_sample_norms());
  EXPECT_FALSE(oracle.executor().knows_sample_norms());
  const std::vector<double> x = random_parameters(network, 1);
  std::vector<double> expected(x.size()), got(x.size());
  plain.Oracle<double>::clipped_gradient(x, {}, 0.5, expected);
  oracle.clipped_gradient(x, {}, 0.5, got);
  EXPECT_EQ(got, expected);
}

// Activations kept in bfloat16 do not change derivatives in a direction, even if an operation reads features
// together with a tensor that has a derivative.
TEST(KeptActivations, KeepEveryBitOfDirectionsOfDataInSums) {
  for (NamedNetwork& each : networks_to_fit()) {
    SCOPED_TRACE(each.name);
    const RandomSamples<double> samples(each.network, 40, 1);
    const std::vector<double> x = random_parameters(each.network, 1), v = random_parameters(each.network, 2);
    Executor<double> plain(each.network);
    each.network.keep_activations(KeptActivations::kBFloat16);
    Executor<double> packed(each.network);
    for (int twice = 0; twice < 2; ++twice)
      EXPECT_EQ(packed.directional(x, v, 40, samples.at()).derivative,
                plain.directional(x, v, 40, samples.at()).derivative);
  }
}

TEST(ActivationBudget, ErrorNamesLeastBudgetThatWorks) {
  for (const NamedNetwork& each : networks_to_fit()) {
    SCOPED_TRACE(each.name);
    const std::uint64_t least = budgets<float>(each.network, 0)[0];
    EXPECT_LE(Executor<float>(with_budget(each.network, ActivationBudget(least))).arena_bytes(), least);
    try {
      const Executor<float> executor(with_budget(each.network, ActivationBudget(least - 1)));
      ADD_FAILURE() << "a budget below the least worked";
    } catch (const BudgetTooSmall& error) {
      EXPECT_EQ(error.least(), least);
      EXPECT_EQ(std::string(error.what()), "an activation budget of " + std::to_string(least - 1) +
                                               " bytes is too small for the network; the least is " +
                                               std::to_string(least));
    }
  }
}

TEST(ActivationBudget, ComputesNothingAgainIfLargeEnough) {
  const Network network = gpt({.vocabulary = 9, .context = 5, .width = 6, .layers = 7, .heads = 2});
  const auto again = [](const Plan& plan) {
    std::size_t forward = 0;
    for (const Plan::Action& action : plan.actions) forward += action.kind == Plan::Action::Kind::kForward;
    return forward - (plan.steps.size() - 1);
  };
  std::size_t before = 0;
  const std::vector<std::uint64_t> some = budgets<float>(network, 4);
  for (auto bytes = some.rbegin(); bytes != some.rend(); ++bytes) {
    const std::uint64_t budget = bytes == some.rbegin() ? 2 * *bytes : *bytes;
    const std::size_t now = again(make_plan(with_budget(network, ActivationBudget(budget)), 4, {}));
    EXPECT_GE(now, before);
    EXPECT_EQ(now == 0, bytes == some.rbegin());
    before = now;
  }
}

TEST(ActivationBudget, PredictsThatUpperLayersCostLess) {
  const Network network = gpt({.vocabulary = 9, .context = 5, .width = 6, .layers = 7, .heads = 2});
  const Executor<float> plain(network), executor(with_budget(network, ActivationBudget::sqrt()));
  const std::size_t d = network.dim();
  EXPECT_DOUBLE_EQ(executor.cost({}), 1);
  EXPECT_LT(executor.cost(Coordinates::range(d - 1, 1)), plain.cost(Coordinates::range(d - 1, 1)));
  EXPECT_GT(executor.cost(Coordinates::range(0, 1)), 0.7);
}

// docs/explanation/engine.md quotes the printed figures.
TEST(ActivationBudget, RunsDeepTransformerInQuarterOfMemory) {
  const Network network = gpt({.vocabulary = 65, .context = 32, .width = 48, .layers = 48, .heads = 6});
  const RandomSamples<float> samples(network, 3, 1);
  const std::vector<double> start = network.start(1);
  const std::vector<float> x(start.begin(), start.end());
  Executor<float> plain(network);
  const std::uint64_t quarter = plain.arena_bytes() / 4;
  Executor<float> executor(with_budget(network, ActivationBudget(quarter))),
      root(with_budget(network, ActivationBudget::sqrt()));
  EXPECT_LE(executor.arena_bytes(), quarter);
  EXPECT_EQ(pass_of(executor, x, 3, samples), pass_of(plain, x, 3, samples));
  std::printf("arena %zu bytes, of a quarter %zu, of sqrt %zu\n", plain.arena_bytes(), executor.arena_bytes(),
              root.arena_bytes());
}

}  // namespace
}  // namespace gradwire
