// Tests of asynchronous algorithms over simulated streams, with relays: the run ends, no reply is added
// twice, no commit is lost, and the state follows from the committed replies.
//   GRADWIRE_SEEDS=100000 build/release/tests/simulated_session_tests     a long run
//   GRADWIRE_SEED=17 build/release/tests/simulated_session_tests          one seed, printed by a failing test
#include <cstdio>
#include <gtest/gtest.h>

#include "config/experiment_file.h"
#include "tests/simulated/seeds.h"
#include "tests/simulated/simulated_session.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

constexpr std::uint64_t kSeeds = scaled(800);

// An algorithm and the dimension of its problem. The last one has messages larger than a stalled socket
// takes.
struct Algorithm {
  const char* algorithm;
  const char* dim = "12";
};
constexpr Algorithm kAlgorithms[] = {
    {"name = \"ringmaster\"\ndelay_threshold = 4\nstep_size = 0.05\n"},
    {"name = \"ringmaster\"\noutdated = \"ignore\"\ncompressor = \"randk:k=3\"\nstep_size = 0.02\n"},
    {"name = \"fedbuff\"\nbuffer = 3\nlocal_steps = 2\nlocal_step_size = 0.1\n"},
    {"name = \"rennala\"\ngradients = 3\noutdated = \"stop\"\nstep_size = 0.2\n"},
    {"name = \"ringleader\"\nstep_size = 0.05\n"},
    {"name = \"mindflayer\"\ntrials = 2\nallotted_seconds = 1.5\nstep_size = 0.2\n"},
    {"name = \"ringmaster\"\nstep_size = 0.02\n", "500"},
};

TEST(AsynchronousSession, ReachesTheStateOfTheCommittedRepliesUnderAnyFaults) {
  std::vector<LoadedExperiment> loaded;
  for (const Algorithm& algorithm : kAlgorithms)
    loaded.push_back(experiment_of(algorithm.algorithm, algorithm.dim));
  const auto [first, last, one] = seeds_asked(kSeeds);
  std::uint64_t server_deaths = 0, client_deaths = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const std::size_t k = seed % std::size(kAlgorithms);
    const End end = SimulatedSession(loaded[k], setting_of(seed, false), seed, nullptr).run();
    ASSERT_EQ(end.trouble, "") << kAlgorithms[k].algorithm << "again: GRADWIRE_SEED=" << seed
                               << " build/release/tests/simulated_session_tests";
    server_deaths += end.server_deaths;
    client_deaths += end.client_deaths;
  }
  if (one) return;
  std::printf("%llu seeds, %llu deaths of servers, %llu of clients\n", static_cast<unsigned long long>(last),
              static_cast<unsigned long long>(server_deaths), static_cast<unsigned long long>(client_deaths));
  EXPECT_GT(server_deaths, last / 2) << "the simulation has too few faults";
  EXPECT_GT(client_deaths, last / 2);
}

// Requests queue for a relay's slow connection. A request to one client must not invalidate those to others.
TEST(AsynchronousSession, KeepsEveryClientWorkingOverASlowRelay) {
  const LoadedExperiment loaded = experiment_of("name = \"ringmaster\"\nstep_size = 0.02\n", "3000");
  Setting setting;
  setting.link_faults.window_bytes = 4096;
  setting.link_faults.delay_seconds = 0.1;
  setting.through_relay = kClients;
  const End end = SimulatedSession(loaded, setting, 1, nullptr).run();
  EXPECT_EQ(end.trouble, "");
  // A client that waits for an invalidated request is asked again after five deadlines.
  EXPECT_LT(end.seconds, 150) << "a client waited for a request that was dropped";
}

}  // namespace
}  // namespace gradwire
