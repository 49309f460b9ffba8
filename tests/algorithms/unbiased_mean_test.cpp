// Rounds in which not all clients reply, with unequal weights. The server's mean over the replies of a
// uniform sample equals, on average over the samples, its mean over all replies.
#include <algorithm>
#include <bit>
#include <gtest/gtest.h>
#include <set>

#include "tests/algorithms/every_algorithm.h"
#include "tests/algorithms/theory.h"

namespace gradwire {
namespace {

using namespace testing;  // NOLINT: helpers of theorem tests

// Algorithms that average trained models by FedAvg's ratio. ProxSkip, FedNL and others require all replies.
const std::set<std::string> kAverages = {"fedavg", "fedprox", "fedadagrad", "fedyogi", "fedadam", "scaffold"};
// Algorithms that decode the received replies. Their weights for two samples are not proportional.
const std::set<std::string> kDecodes = {"coded_gd"};
// Algorithms whose server keeps the last part of each client, so the part of an absent client stays in the
// sum. They do not average over the sample.
const std::set<std::string> kRemember = {"ef21",    "ef21_w",  "ef21_sgd", "ef21_sgdm",
                                         "ef21_pp", "ef21_bc", "ef21_hb",  "ef21_plus"};

constexpr std::uint32_t kMeanClients = 5;
constexpr std::size_t kDim = 4;
const std::vector<double> kWeights = {0.6, 0.05, 0.2, 0.1, 0.05};

std::shared_ptr<RunContext<double>> run_context_of(const Federation<double>& federation, AlgorithmSpec spec) {
  const auto run_context = federation.run_context(std::move(spec));
  run_context->weights = kWeights;
  return run_context;
}

// Returns x^1 if each client i whose bit is set in `members` sends sent[i] as its part.
Vec<double> model_after(std::shared_ptr<const RunContext<double>> run_context, unsigned members,
                        const std::vector<Vec<double>>& sent) {
  const auto server = make_server<double>(run_context);
  std::vector<Uplink<double>> uplinks;
  for (ClientId i = 0; i < run_context->n; ++i) {
    if ((members >> i & 1) == 0) continue;
    Uplink<double> up;
    up.client = i;
    up.parts = {Payload<double>::dense(sent[i])};
    if (!server->accepts(up)) up.parts.push_back(Payload<double>::dense(sent[(i + 1) % run_context->n]));
    EXPECT_TRUE(server->accepts(up)) << run_context->algorithm.name;
    uplinks.push_back(up);
  }
  server->apply(std::vector<UplinkView<double>>(uplinks.begin(), uplinks.end()));
  server->broadcast();
  return {server->model().begin(), server->model().end()};
}

AlgorithmSpec plain(const AlgorithmInfo& algorithm) {
  AlgorithmSpec spec = spec_for(algorithm);
  spec.batch = 0;
  if (algorithm.traits.name == "fwd_grad") spec.parameters = {{"directions", std::to_string(kDim)}};
  if (algorithm.traits.name == "ef21_p") spec.parameters = {{"compressor_down", "identity"}};
  return spec;
}

TEST(UnbiasedMean, AveragesOverSamplesToModelOfAllClients) {
  const Federation<double> federation(kMeanClients, kDim);
  std::vector<Vec<double>> sent;
  Random random(1, "sent");
  for (std::uint32_t i = 0; i < kMeanClients; ++i) {
    sent.emplace_back();
    for (std::size_t j = 0; j < kDim; ++j) sent[i].push_back(random.normal());
  }
  std::set<std::string> checked;
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    const std::string name(algorithm.traits.name);
    if (algorithm.traits.needs_all_replies || kAverages.contains(name) || kRemember.contains(name) ||
        kDecodes.contains(name))
      continue;
    checked.insert(name);
    const auto run_context = run_context_of(federation, plain(algorithm));
    const Vec<double> whole = model_after(run_context, (1u << kMeanClients) - 1, sent);
    for (int size = 1; size < static_cast<int>(kMeanClients); ++size) {
      Vec<double> mean(kDim);
      int subsets = 0;
      for (unsigned members = 0; members < 1u << kMeanClients; ++members)
        subsets += std::popcount(members) == size;
      for (unsigned members = 0; members < 1u << kMeanClients; ++members) {
        if (std::popcount(members) != size) continue;
        const Vec<double> x = model_after(run_context, members, sent);
        for (std::size_t j = 0; j < kDim; ++j) mean[j] += x[j] / subsets;
      }
      for (std::size_t j = 0; j < kDim; ++j) EXPECT_NEAR(mean[j], whole[j], 1e-13) << name << " of " << size;
    }
  }
  EXPECT_EQ(checked, (std::set<std::string>{"gd", "nesterov", "dcgd", "sgd_nice", "fwd_grad", "diana",
                                            "vr_diana", "adiana", "frecon", "ef14", "ef21_p"}));
}

// FedAvg's ratio: if all replies are equal, the result is that reply, for any sample.
TEST(FedAvgsRatio, ReturnsEqualMessagesUnchangedForEverySample) {
  const Federation<double> federation(kMeanClients, kDim);
  const std::vector<Vec<double>> sent(kMeanClients, Vec<double>(kDim, 0.5));
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    const std::string name(algorithm.traits.name);
    if (!kAverages.contains(name)) continue;
    const auto run_context = run_context_of(federation, plain(algorithm));
    const Vec<double> whole = model_after(run_context, (1u << kMeanClients) - 1, sent);
    for (unsigned members = 1; members < 1u << kMeanClients; ++members) {
      const Vec<double> x = model_after(run_context, members, sent);
      for (std::size_t j = 0; j < kDim; ++j) EXPECT_NEAR(x[j], whole[j], 1e-14) << name;
    }
  }
}

// COFIG itself draws two samples, so this test averages over seeds.
TEST(UnbiasedMean, HoldsForStepOfCofig) {
  const Federation<double> federation(kMeanClients, kDim);
  AlgorithmSpec spec = spec_of("cofig", "identity", {}, "0.1");
  const auto all = run_context_of(federation, spec);
  std::vector<Vec<double>> sent;
  for (std::uint32_t i = 0; i < kMeanClients; ++i) sent.emplace_back(kDim, i == 0 ? 3.0 : -1.0 * i);
  const Vec<double> whole = model_after(all, (1u << kMeanClients) - 1, sent);
  spec.participation = 0.4;
  constexpr int kSeeds = 4000;
  double mean = 0, square = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const auto run_context = run_context_of(federation, spec);
    run_context->seed = static_cast<std::uint64_t>(seed);
    const double step = model_after(run_context, (1u << kMeanClients) - 1, sent)[0] - federation.x0[0];
    mean += step / kSeeds;
    square += step * step / kSeeds;
  }
  EXPECT_NEAR(mean, whole[0] - federation.x0[0], 5 * std::sqrt((square - mean * mean) / kSeeds));
}

// With FedAvg's ratio, the algorithms would stop at an error that no step size reduces.
TEST(UnbiasedMean, LetsSamplingNoiseFallWithStepSize) {
  Federation<double> federation(kMeanClients, kDim);
  Vec<double> optimum(kDim);
  for (std::size_t j = 0; j < kDim; ++j) {
    double a = 0, ab = 0;
    for (std::uint32_t i = 0; i < kMeanClients; ++i) {
      a += kWeights[i] * federation.oracles[i]->a[j];
      ab += kWeights[i] * federation.oracles[i]->a[j] * federation.oracles[i]->b[j];
    }
    optimum[j] = ab / a;
  }
  for (const char* name : {"gd", "dcgd", "sgd_nice", "ef14"}) {
    const auto distance = [&](const char* step, std::uint32_t rounds) {
      AlgorithmSpec spec = spec_of(name, "identity", {}, step);
      spec.participation = 0.4;
      RoundLimits limits;
      limits.evaluate_every = 0;
      double mean = 0;
      for (int seed = 1; seed <= 5; ++seed) {
        const auto run_context = run_context_of(federation, spec);
        run_context->seed = static_cast<std::uint64_t>(seed);
        mean += squared_distance(run<double>(federation, run_context, rounds, {}, limits).model, optimum) / 5;
      }
      return mean;
    };
    EXPECT_LT(distance("0.002", 10'000), 0.1 * distance("0.1", 500)) << name;
  }
}

}  // namespace
}  // namespace gradwire
