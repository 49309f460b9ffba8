// What the loop asks of its surroundings.
#include "rounds/round_loop.h"

#include <gtest/gtest.h>

#include "tests/algorithms/federation.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_of;

TEST(RoundLoop, WritesDownTheSecondsThatItIsToldAndNoneWhenItIsToldNone) {
  const Federation<double> federation(2, 3);
  const auto setup = federation.setup(spec_of("gd", "identity", {}, "0.1"));
  InProcess<double> clients(setup, federation.oracle_pointers(), {});
  const auto server = make_server<double>(setup);
  Ledger ledger;
  RoundLimits limits;
  limits.rounds = 2;
  std::vector<double> rows, commits;
  double clock = 100;
  LoopHooks<double> hooks;
  hooks.seconds = [&] { return clock += 1; };
  hooks.on_record = [&](const RoundRecord& row) { rows.push_back(row.seconds); };
  hooks.on_commit = [&](const RoundCommit<double>& commit) {
    commits.push_back(commit.ledger.totals.seconds);
  };
  run_rounds<double>(*server, facts_of(*setup), *setup, clients, ledger, limits, hooks);
  EXPECT_EQ(rows, (std::vector<double>{101, 103, 105})) << "before each round, and at the end";
  EXPECT_EQ(commits, (std::vector<double>{102, 104}));

  limits.rounds = 3;
  hooks.seconds = nullptr;
  rows.clear();
  run_rounds<double>(*server, facts_of(*setup), *setup, clients, ledger, limits, hooks);
  EXPECT_EQ(rows, (std::vector<double>{104, 104})) << "the run goes on from what its ledger says";
}

}  // namespace
}  // namespace gradwire
