// Tests of rounds that ask more clients than they use. The clients whose replies are used stay a uniform
// sample, and the server ignores the other replies.
#include <cmath>
#include <gtest/gtest.h>
#include <set>

#include "algorithms/core/sampling.h"
#include "base/serialize.h"
#include "config/experiment_file.h"
#include "simulation/simulate.h"
#include "tests/algorithms/every_algorithm.h"
#include "tests/config/experiment_text.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::run;
using testing::spec_for;
using testing::spec_of;
using testing::Trace;

bool takes_over_selection(const AlgorithmTraits& traits) {
  return traits.partial && !traits.needs_all_replies;
}

RoundLimits asking_more(double share, double quorum = 1) {
  RoundLimits limits;
  limits.over_selection = share;
  limits.quorum = quorum;
  limits.evaluate_every = 0;
  return limits;
}

FaultSimulationOptions arriving_anyhow(unsigned threads = 1) {
  FaultSimulationOptions options;
  options.threads = threads;
  options.draw_arrival = true;
  return options;
}

AlgorithmSpec sampled(AlgorithmSpec spec, double participation) {
  spec.participation = participation;
  return spec;
}

// Returns the clients whose replies were used, by round.
std::vector<std::vector<ClientId>> used_clients(const Federation<double>& federation, std::uint32_t rounds,
                                                const FaultSimulationOptions& options, RoundLimits limits,
                                                RunProgress& progress) {
  const auto run_context = federation.run_context(sampled(spec_of("dcgd", "identity", {}, "0.01"), 0.2));
  FaultSimulation<double> clients(run_context, federation.oracle_pointers(), options);
  const auto server = make_server<double>(run_context);
  std::vector<std::vector<ClientId>> used;
  LoopHooks<double> hooks;
  hooks.on_commit = [&](const RoundCommit<double>& commit) {
    used.emplace_back();
    for (const auto& up : commit.replies) used.back().push_back(up.client);
  };
  limits.rounds = rounds;
  run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
  return used;
}

// Returns the largest deviation from the mean number of uses of a client, in standard deviations.
double worst_deviation(const std::vector<std::vector<ClientId>>& used, std::uint32_t n) {
  std::vector<double> times(n);
  double total = 0;
  for (const auto& clients : used)
    for (const ClientId c : clients) times[c] += 1, total += 1;
  const double rounds = static_cast<double>(used.size()), p = total / (rounds * n);
  double worst = 0;
  for (const double count : times)
    worst = std::max(worst, std::abs(count - rounds * p) / std::sqrt(rounds * p * (1 - p)));
  return worst;
}

TEST(SpareClients, HaveTheRequestedNumberWithoutRepeats) {
  for (const std::uint32_t n : {1u, 7u, 40u}) {
    for (const double share : {0.0, 0.1, 0.3, 1.0, 2.5, 1e300}) {
      std::vector<ClientId> members, wider;
      sample_cohort(3, 5, n, 0.25, members);
      wider = members;
      add_spare_clients(3, 5, n, share, wider);
      const double want = std::min<double>(
          n, static_cast<double>(members.size()) + std::ceil(share * static_cast<double>(members.size())));
      EXPECT_EQ(static_cast<double>(wider.size()), want) << n << " " << share;
      EXPECT_EQ(std::set<ClientId>(wider.begin(), wider.end()).size(), wider.size());
      EXPECT_TRUE(std::is_sorted(wider.begin(), wider.end()));
      EXPECT_TRUE(std::includes(wider.begin(), wider.end(), members.begin(), members.end()));
      EXPECT_LT(wider.back(), n);
    }
  }
}

TEST(SpareClients, SampleTheOtherClientsUniformly) {
  std::vector<std::vector<ClientId>> rounds(4000);
  for (std::uint32_t k = 0; k < rounds.size(); ++k) {
    rounds[k] = {2, 3, 11};
    add_spare_clients(1, k, 13, 1, rounds[k]);
    std::erase_if(rounds[k], [](ClientId c) { return c == 2 || c == 3 || c == 11; });
    for (ClientId& c : rounds[k]) c -= c > 11 ? 3 : c > 3 ? 2 : 0;
  }
  EXPECT_LT(worst_deviation(rounds, 10), 5);
}

TEST(CeilShare, ToleratesRoundingOfTheLastBit) {
  EXPECT_EQ(ceil_share(0.07, 100), 7u);
  EXPECT_EQ(ceil_share(0.1, 30), 3u);
  EXPECT_EQ(ceil_share(0.3, 10), 3u);
  EXPECT_EQ(ceil_share(0.31, 10), 4u);
  EXPECT_EQ(ceil_share(0, 10), 0u);
  EXPECT_EQ(ceil_share(1, 1'000'000), 1'000'000u);
}

TEST(OverSelection, UsesEquallyManyRepliesAndAsksMoreClients) {
  const Federation<double> federation(20, 3);
  const auto check = [&](RoundLimits limits, std::size_t used, std::uint32_t asked) {
    RunProgress progress;
    for (const auto& clients : used_clients(federation, 50, arriving_anyhow(), limits, progress))
      EXPECT_EQ(clients.size(), used);
    EXPECT_EQ(progress.totals.bits_down, 50.0 * asked * 3 * 64);
    EXPECT_EQ(progress.totals.bits_up, 50.0 * static_cast<double>(used) * 3 * 64);
  };
  check(asking_more(0), 4, 4);
  check(asking_more(0.3), 4, 6);
  check(asking_more(0.5, 0.7), 3, 6);
  check(asking_more(100), 4, 20);
}

TEST(OverSelection, UsesAUniformSample) {
  const Federation<double> federation(20, 3);
  for (const double share : {0.3, 1.0, 100.0}) {
    RunProgress progress;
    EXPECT_LT(
        worst_deviation(used_clients(federation, 4000, arriving_anyhow(), asking_more(share), progress), 20),
        5)
        << share;
  }
  // Without a drawn order of arrival, the clients with the last numbers are always late. worst_deviation()
  // must detect that.
  RunProgress progress;
  EXPECT_GT(worst_deviation(used_clients(federation, 4000, {}, asking_more(0.3), progress), 20), 5);
}

TEST(OverSelection, GivesTheSameBitsForAnyThreadsThroughTheCodecAndRepeatedly) {
  const Federation<double> federation(12, 9);
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    if (!takes_over_selection(algorithm.traits)) continue;
    const auto run_context = federation.run_context(sampled(spec_for(algorithm), 0.4));
    RoundLimits limits = asking_more(0.5);
    limits.evaluate_every = 5;
    const auto once = run<double>(federation, run_context, 40, arriving_anyhow(), limits);
    FaultSimulationOptions encoded = arriving_anyhow(3);
    encoded.encoded = true;
    for (const FaultSimulationOptions& options : {arriving_anyhow(), arriving_anyhow(4), encoded}) {
      const auto again = run<double>(federation, run_context, 40, options, limits);
      EXPECT_EQ(again.server_state, once.server_state) << algorithm.traits.name;
      EXPECT_EQ(again.client_states, once.client_states) << algorithm.traits.name;
      EXPECT_EQ(again.records.back().bits_up, once.records.back().bits_up) << algorithm.traits.name;
      EXPECT_EQ(again.records.back().bytes_up, once.records.back().bytes_up) << algorithm.traits.name;
    }
  }
}

// Lost and repeated messages change which clients are first. They change neither how many are used nor what a
// client may commit: the server's replicas equal the clients' states.
TEST(OverSelection, NeitherAddsNorCommitsRepliesThatAreLate) {
  const Federation<double> federation(12, 9);
  for (const bool faults : {false, true}) {
    const auto run_context = federation.run_context(sampled(spec_of("ef21", "topk:k=2"), 0.4));
    run_context->keep_client_state_replicas = true;
    FaultSimulationOptions options = arriving_anyhow();
    if (faults) options.faults = {.lost_replies = 0.1, .duplicates = 0.2};
    const auto trace = run<double>(federation, run_context, 200, options, asking_more(0.6),
                                   [&](std::uint32_t round, ServerAlgorithm<double>& server,
                                       FaultSimulation<double>& clients, RunProgress& progress) {
                                     if (round == 1) return;  // all were asked and used
                                     EXPECT_EQ(progress.totals.replies, 5u);
                                     const std::string state = server.save();
                                     Loader loader(state);
                                     Vec<double> x, g;
                                     std::uint32_t t = 0;
                                     std::vector<Vec<double>> g_of;
                                     loader(x), loader(t), loader(g), loader(g_of);
                                     for (ClientId c = 0; c < run_context->n; ++c) {
                                       clients.runtime(c).settle(progress.committed[c]);
                                       const std::string own = clients.runtime(c).algorithm().save();
                                       Loader client(own);
                                       Vec<double> g_i;
                                       client(g_i);
                                       ASSERT_EQ(g_i, g_of[c]) << "client " << c << " in round " << round;
                                     }
                                   });
    EXPECT_LT(federation.gap(trace.model), 1e-2);
  }
}

std::string after_thirty_rounds(const Federation<double>& federation, const AlgorithmInfo& algorithm,
                                bool moved) {
  const auto run_context = federation.run_context(sampled(spec_for(algorithm), 0.4));
  const auto make_clients = [&] {
    return std::make_unique<FaultSimulation<double>>(run_context, federation.oracle_pointers(),
                                                     arriving_anyhow());
  };
  auto clients = make_clients();
  auto server = make_server<double>(run_context);
  RunProgress progress;
  progress.committed.resize(run_context->n);
  for (const std::uint32_t rounds : {15u, 30u}) {
    RoundLimits limits = asking_more(0.5);
    limits.evaluate_every = 4;
    limits.rounds = rounds;
    limits.keep_clients = true;
    run_rounds<double>(*server, algorithm.traits, *run_context, *clients, progress, limits, {});
    if (rounds == 30 || !moved) continue;
    const std::string of_server = server->save(), of_clients = clients->save_clients(progress.committed);
    server = make_server<double>(run_context);
    clients = make_clients();
    EXPECT_TRUE(server->load(of_server) && clients->load_clients(of_clients));
  }
  return server->save() + clients->save_clients(progress.committed);
}

TEST(OverSelection, ResumesFromACheckpointToTheSameBits) {
  const Federation<double> federation(12, 9);
  int checked = 0;
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    if (!takes_over_selection(algorithm.traits)) continue;
    ++checked;
    EXPECT_EQ(after_thirty_rounds(federation, algorithm, true),
              after_thirty_rounds(federation, algorithm, false))
        << algorithm.traits.name;
  }
  EXPECT_GT(checked, 10);
}

TEST(OverSelection, SimulatesAnExperimentToTheSameBitsForAnyThreads) {
  const std::string text = R"(
[problem]
kind = "quadratic"
dim = 20
heterogeneity = 0.5
[clients]
count = 10
participation = 0.4
[algorithm]
name = "fedavg"
local_steps = 2
local_step_size = 0.1
[run]
rounds = 40
[server]
over_selection = 0.5
)";
  const std::atomic<bool> never = false;
  const auto model = [&](unsigned threads, const std::vector<std::string>& overrides = {}) {
    return simulate(prepare(parse_experiment(text, "a.toml", overrides)), false, threads, {}, never).model;
  };
  const auto once = model(1);
  EXPECT_EQ(model(4), once);
  EXPECT_NE(model(1, {"server.over_selection=0"}), once) << "the used clients are another sample";
}

}  // namespace
}  // namespace gradwire
