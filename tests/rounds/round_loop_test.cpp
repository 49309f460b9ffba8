// Tests of the calls of the round loop to its hooks.
#include "rounds/round_loop.h"

#include <gtest/gtest.h>

#include "tests/algorithms/federation.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_of;

TEST(RoundLoop, RecordsTheSecondsOfItsHookAndNoneWithoutOne) {
  const Federation<double> federation(2, 3);
  const auto run_context = federation.run_context(spec_of("gd", "identity", {}, "0.1"));
  FaultSimulation<double> clients(run_context, federation.oracle_pointers(), {});
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 2;
  std::vector<double> rows, commits;
  double clock = 100;
  LoopHooks<double> hooks;
  hooks.seconds = [&] { return clock += 1; };
  hooks.on_record = [&](const RoundRecord& row) { rows.push_back(row.seconds); };
  hooks.on_commit = [&](const RoundCommit<double>& commit) {
    commits.push_back(commit.progress.totals.seconds);
  };
  run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
  EXPECT_EQ(rows, (std::vector<double>{101, 103, 105})) << "before each round, and at the end";
  EXPECT_EQ(commits, (std::vector<double>{102, 104}));

  limits.rounds = 3;
  hooks.seconds = nullptr;
  rows.clear();
  run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
  EXPECT_EQ(rows, (std::vector<double>{104, 104})) << "the run continues from its progress";
}

TEST(RoundLoop, ContinuesTheCountOfEvaluationsWithoutANewMinimum) {
  const Federation<double> federation(2, 3);
  const auto run_context =
      federation.run_context(spec_of("gd", "identity", {}, "1e-300"));  // x does not change
  const auto rounds_with = [&](std::uint32_t patience, Plateau plateau, std::uint32_t every = 1) {
    FaultSimulation<double> clients(run_context, federation.oracle_pointers(), {});
    const auto server = make_server<double>(run_context);
    RunProgress progress;
    RoundLimits limits;
    limits.rounds = 10;
    limits.evaluate_every = every;
    limits.patience = patience;
    limits.plateau = plateau;
    const Outcome outcome =
        run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, {});
    EXPECT_EQ(outcome, progress.round < 10 ? Outcome::kStalled : Outcome::kFinished);
    return progress.round;
  };
  EXPECT_EQ(rounds_with(0, {}), 10u);
  EXPECT_EQ(rounds_with(4, {}), 4u);
  EXPECT_EQ(rounds_with(4, {}, 2), 8u);
  EXPECT_EQ(rounds_with(4, {.best = -1e9, .evaluations = 2}), 1u) << "rows 0 and 1 are the third and fourth";
  EXPECT_EQ(rounds_with(4, {.best = 1e9, .evaluations = 3}), 4u) << "row 0 is a new minimum";
}

TEST(RoundLoop, HandsOutEachClientsAnswer) {
  const Federation<double> federation(4, 3);
  const auto run_context = federation.run_context(spec_of("gd", "identity", {}, "0.1"));
  FaultSimulation<double> clients(run_context, federation.oracle_pointers(), {});
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 3;
  limits.evaluate_every = 2;
  std::vector<double> means, of_clients;
  std::vector<std::uint32_t> rounds;
  LoopHooks<double> hooks;
  hooks.on_record = [&](const RoundRecord& row) { means.push_back(row.loss); };
  hooks.on_clients = [&](std::uint32_t round, std::span<const ClientEvaluation> answers) {
    rounds.push_back(round);
    ASSERT_EQ(answers.size(), 4u);
    Vec<double> gradient(3);
    double mean = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(answers[i].answered);
      EXPECT_EQ(answers[i].loss,
                federation.oracles[i]->loss_and_gradient(server->model(), {}, Out<double>(gradient)));
      mean += answers[i].loss / 4;
    }
    of_clients.push_back(mean);
  };
  run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
  EXPECT_EQ(rounds, (std::vector<std::uint32_t>{0, 2, 3}));
  ASSERT_EQ(means.size(), 3u);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(of_clients[k], means[k], 1e-12);
}

}  // namespace
}  // namespace gradwire
