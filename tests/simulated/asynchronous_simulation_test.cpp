// Tests of asynchronous algorithms on a simulated network, disk and clock: under any faults the run ends, no
// reply is added twice, no commit is lost, and the state follows from the committed replies.
//   GRADWIRE_SEEDS=100000 build/release/tests/simulated_network_tests     a long run
//   GRADWIRE_SEED=17 build/release/tests/simulated_network_tests          one seed, printed by a failing test
#include <cstdio>
#include <gtest/gtest.h>

#include "config/experiment_spec.h"
#include "tests/simulated/seeds.h"
#include "tests/simulated/simulated_run.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

constexpr std::uint64_t kSeeds = scaled(2000);

const std::vector<std::string>& algorithms() {
  static const std::vector<std::string> all = {
      "name = \"ringmaster\"\ndelay_threshold = 4\nstep_size = 0.05\n",
      "name = \"ringmaster\"\ndelay_threshold = 3\noutdated = \"ignore\"\nstep_size = 0.05\n",
      "name = \"ringmaster\"\ndelay_threshold = 6\ncompressor = \"randk:k=3\"\nstep_size = 0.02\n",
      "name = \"fedbuff\"\nbuffer = 3\nlocal_steps = 2\nlocal_step_size = 0.1\n",
      "name = \"asgd\"\nstep_size = 0.02\n",
      "name = \"delay_adaptive_asgd\"\nstep_size = 0.05\n",
      "name = \"rennala\"\ngradients = 3\nstep_size = 0.2\n",
      "name = \"rennala\"\ngradients = 2\noutdated = \"stop\"\nstep_size = 0.2\n",
      "name = \"ringleader\"\nstep_size = 0.05\n",
      "name = \"mindflayer\"\ntrials = 2\nallotted_seconds = 1.5\nstep_size = 0.2\n",
  };
  return all;
}

std::vector<ExperimentSpec> experiments() {
  std::vector<ExperimentSpec> all;
  for (const std::string& algorithm : algorithms()) all.push_back(experiment_of(algorithm));
  return all;
}

TEST(AsynchronousSimulation, ReachesTheStateOfTheCommittedRepliesUnderAnyFaults) {
  const auto all = experiments();
  const auto [first, last, one] = seeds_asked(kSeeds);
  std::uint64_t server_deaths = 0, client_deaths = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const ExperimentSpec& experiment = all[seed % all.size()];
    const End end = SimulatedRun(experiment, setting_of(seed, false), seed).run();
    ASSERT_EQ(end.trouble, "") << algorithms()[seed % all.size()] << "again: GRADWIRE_SEED=" << seed
                               << " build/release/tests/simulated_network_tests";
    EXPECT_EQ(end.progress.round, Setting{}.steps);
    server_deaths += end.server_deaths;
    client_deaths += end.client_deaths;
  }
  if (one) return;
  EXPECT_GT(server_deaths, last / 2) << "the simulation has too few faults";
  EXPECT_GT(client_deaths, last / 2);
}

TEST(AsynchronousSimulation, EvaluationsStopNoWorkWithoutFaults) {
  // Outdated replies are ignored, and their work is not stopped.
  const ExperimentSpec experiment = experiment_of(algorithms()[1]);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Setting setting;
    setting.link_faults.delay_seconds = 5;
    setting.never_stops = true;
    EXPECT_EQ(SimulatedRun(experiment, setting, seed).run().trouble, "") << "seed " << seed;
  }
}

// Returns the first seed that finds the bug; 0 if there is none.
std::uint64_t first_that_finds(Bug bug, std::size_t algorithms) {
  const auto all = experiments();
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Setting setting = setting_of(seed, false);
    setting.bug = bug;
    const std::string found = SimulatedRun(all[seed % algorithms], setting, seed).run().trouble;
    if (found.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), found.c_str());
    return seed;
  }
  return 0;
}

TEST(AsynchronousSimulation, FindsAnAppliedOutdatedReply) {
  EXPECT_GT(first_that_finds(Bug::kAddsWhatIsOutdated, 3), 0u);  // by Ringmaster, which has such replies
}
TEST(AsynchronousSimulation, FindsAReplyAddedTwice) {
  EXPECT_GT(first_that_finds(Bug::kAddsTwice, algorithms().size()), 0u);
}
TEST(AsynchronousSimulation, FindsACommitAnnouncedBeforeItIsDurable) {
  EXPECT_GT(first_that_finds(Bug::kAnnouncesBeforeDurable, algorithms().size()), 0u);
}
TEST(AsynchronousSimulation, FindsAFolderThatIsNotSynchronized) {
  EXPECT_GT(first_that_finds(Bug::kForgetsFolder, algorithms().size()), 0u);
}

}  // namespace
}  // namespace gradwire
