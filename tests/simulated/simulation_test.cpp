// Deterministic simulation: the real round loop, journal, codec and workers on a simulated network, disk and
// clock. Messages may be lost, late or repeated, and processes may die. In any case the run ends with the
// same bits as a quiet run.
//   GRADWIRE_SEEDS=100000 build/release/tests/simulated_network_tests     a long run
//   GRADWIRE_SEED=17 build/release/tests/simulated_network_tests          one seed, printed by a failing test
#include <cstdio>
#include <deque>
#include <gtest/gtest.h>

#include "config/experiment_spec.h"
#include "tests/simulated/seeds.h"
#include "tests/simulated/simulated_run.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

constexpr std::uint64_t kSeeds = scaled(2000);

// The last two have state that only the client knows.
const std::vector<std::string>& algorithms() {
  static const std::vector<std::string> all = {
      "name = \"ef21\"\ncompressor = \"topk:k=2\"\n",
      "name = \"marina\"\ncompressor = \"randk:k=3\"\n",
      "name = \"diana\"\ncompressor = \"randk:k=3\"\n",
      "name = \"scaffold\"\nlocal_steps = 2\n",
      "name = \"fedavg\"\nlocal_steps = 2\n",
      "name = \"ef21_bc\"\ncompressor = \"topk:k=2\"\ncompressor_down = \"topk:k=4\"\n",
      "name = \"proxskip\"\np = 0.3\n",
      "name = \"vr_diana\"\ncompressor = \"randk:k=3\"\np = 0.3\nstep_size = 0.05\n",
      "name = \"ef14\"\ncompressor = \"topk:k=2\"\nstep_size = 0.05\n",
      "name = \"dasha_mvr\"\ncompressor = \"randk:k=3\"\n",
  };
  return all;
}
bool is_private(const std::string& algorithm) {
  return algorithm.find("ef14") != std::string::npos || algorithm.find("dasha_mvr") != std::string::npos;
}

class Quiet {
 public:
  const End& end(std::size_t k) {
    if (ends_.empty())
      for (const std::string& algorithm : algorithms()) {
        experiments_.push_back(experiment_of(algorithm));
        ends_.push_back(SimulatedRun(experiments_.back(), {}, 1).run());
      }
    return ends_[k];
  }
  const ExperimentSpec& experiment(std::size_t k) { return end(k), experiments_[k]; }

 private:
  std::deque<ExperimentSpec> experiments_;
  std::vector<End> ends_;
};

// Returns the error at the end of a run. Empty if there is none.
std::string difference(const End& got, const End& want) {
  if (!got.trouble.empty()) return got.trouble;
  if (got.state != want.state) return "the state of the algorithm differs";
  const RunTotals &a = got.progress.totals, &b = want.progress.totals;
  if (a.bits_up != b.bits_up || a.bits_down != b.bits_down || a.bytes_up != b.bytes_up ||
      a.bytes_down != b.bytes_down)
    return "the counts of bits and bytes differ";
  if (a.grad_calls != b.grad_calls) return "the gradients are counted differently";
  return "";
}

TEST(Simulation, ReachesTheBitsOfAQuietRunUnderAnyFaults) {
  Quiet quiet;
  const auto [first, last, one] = seeds_asked(kSeeds);
  std::uint64_t server_deaths = 0, client_deaths = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const std::size_t k = seed % algorithms().size();
    const End end =
        SimulatedRun(quiet.experiment(k), setting_of(seed, is_private(algorithms()[k])), seed).run();
    ASSERT_EQ(difference(end, quiet.end(k)), "") << algorithms()[k] << "again: GRADWIRE_SEED=" << seed
                                                 << " build/release/tests/simulated_network_tests";
    server_deaths += end.server_deaths;
    client_deaths += end.client_deaths;
  }
  if (one) return;
  EXPECT_GT(server_deaths, last / 2) << "the simulation has too few faults";
  EXPECT_GT(client_deaths, last / 2);
}

// Which clients are fast may change the bits of such a run, but only by which replies are used.
TEST(Simulation, ReachesTheStateOfTheAnsweringClientsWithAQuorum) {
  const auto [first, last, one] = seeds_asked(kSeeds / 4);
  std::vector<ExperimentSpec> experiments;
  for (const std::string& algorithm : algorithms()) experiments.push_back(experiment_of(algorithm));
  for (std::string algorithm : algorithms())
    if (algorithm.find("fedavg") != std::string::npos || algorithm.find("scaffold") != std::string::npos)
      experiments.push_back(experiment_of(algorithm, "12", "participation = 0.5\n"));
  std::size_t fewest = SIZE_MAX;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const ExperimentSpec& experiment = experiments[seed % experiments.size()];
    Setting setting = setting_of(seed, is_private("name = \"" + experiment.algorithm.name));
    Random random(seed, "quorum");
    setting.quorum = 0.3 + 0.2 * static_cast<double>(random.below(4));
    setting.over_selection = 0.5 * static_cast<double>(random.below(3));
    const End end = SimulatedRun(experiment, setting, seed).run();
    ASSERT_EQ(end.trouble, "") << experiment.algorithm.name << " again: GRADWIRE_SEED=" << seed
                               << " build/release/tests/simulated_network_tests";
    fewest = std::min(fewest, end.fewest_replies);
  }
  if (!one) {
    EXPECT_LE(fewest, 2u) << "the simulation waits for all clients";
  }
}

// Sections of this size are packed and unpacked in buffers that are freed afterwards.
TEST(Simulation, StoresRequestsOfHundredsOfKilobytes) {
  const ExperimentSpec experiment =
      experiment_of("name = \"ef14\"\ncompressor = \"topk:k=9\"\nstep_size = 0.05\n", "60000");
  const End quiet = SimulatedRun(experiment, {}, 1).run();
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const End end = SimulatedRun(experiment, {.link_faults = {.client_dies = 0.3}}, seed).run();
    EXPECT_EQ(difference(end, quiet), "");
    EXPECT_GT(end.client_deaths, 5u);
  }
}

TEST(Simulation, EndsWithAClearErrorIfAClientLosesItsOnlyState) {
  const ExperimentSpec experiment =
      experiment_of("name = \"ef14\"\ncompressor = \"topk:k=2\"\nstep_size = 0.05\n");
  const End end = SimulatedRun(experiment, {.link_faults = {.client_dies = 0.3, .disk_lost = 1}}, 1).run();
  EXPECT_NE(end.trouble.find("lost its state, and the server has no copy of it"), std::string::npos)
      << end.trouble;
}

// Returns the first seed that finds the bug; 0 if there is none.
std::uint64_t first_that_finds(Bug bug) {
  Quiet quiet;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const std::size_t k = seed % algorithms().size();
    Setting setting = setting_of(seed, is_private(algorithms()[k]));
    setting.bug = bug;
    const std::string found =
        difference(SimulatedRun(quiet.experiment(k), setting, seed).run(), quiet.end(k));
    if (found.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), found.c_str());
    return seed;
  }
  return 0;
}

TEST(Simulation, FindsACommitAnnouncedBeforeItIsDurable) {
  EXPECT_GT(first_that_finds(Bug::kAnnouncesBeforeDurable), 0u);
}
TEST(Simulation, FindsAFolderThatIsNotSynchronized) { EXPECT_GT(first_that_finds(Bug::kForgetsFolder), 0u); }
TEST(Simulation, FindsRepliesAddedInOrderOfArrival) {
  EXPECT_GT(first_that_finds(Bug::kAddsInArrivalOrder), 0u);
}
TEST(Simulation, FindsRepliesAddedBeforeTheyAreAccepted) {
  EXPECT_GT(first_that_finds(Bug::kAddsBeforeAccepting), 0u);
}

}  // namespace
}  // namespace gradwire
