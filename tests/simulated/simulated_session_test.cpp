// Deterministic simulation of whole federations: the real session manager, sessions, connections, round loop,
// journal and clients on simulated streams, disks and a clock. Connections break after any byte, fall silent
// and stall; clients and servers die anywhere. After every committed round the state has the bits of a quiet
// run. If a relay adds up replies, the states are equal up to rounding.
//   GRADWIRE_SEEDS=100000 build/release/tests/simulated_session_tests     a long run
//   GRADWIRE_SEED=17 build/release/tests/simulated_session_tests          one seed, printed by a failing test
#include "tests/simulated/simulated_session.h"

#include <cstdio>
#include <deque>
#include <gtest/gtest.h>

#include "config/experiment_file.h"
#include "tests/simulated/seeds.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

constexpr std::uint64_t kSeeds = scaled(1000);
constexpr std::uint64_t kSecureSeeds = scaled(80);  // handshakes take most of the time
struct Algorithm {
  const char* algorithm;
  const char* dim = "12";
  bool is_private = false;  // has state that only the client knows
};
// The last two algorithms have payloads of several chunks. The last one sends parts of them as chunks.
constexpr Algorithm kAlgorithms[] = {
    {"name = \"ef21\"\ncompressor = \"topk:k=2\"\n"},
    {"name = \"marina\"\ncompressor = \"randk:k=3\"\n"},
    {"name = \"diana\"\ncompressor = \"randk:k=3\"\n"},
    {"name = \"scaffold\"\nlocal_steps = 2\n"},
    {"name = \"fedavg\"\nlocal_steps = 2\n"},
    {"name = \"ef14\"\ncompressor = \"topk:k=2\"\nstep_size = 0.05\n", "12", true},
    {"name = \"dasha_mvr\"\ncompressor = \"randk:k=3\"\n", "12", true},
    {"name = \"gd\"\n", "20000"},
    {"name = \"diana\"\ncompressor = \"randseqk:k=50%\"\n[server]\nzstd = \"off\"\noverlap = true\n",
     "20000"},
};
constexpr std::size_t kAlgorithmCount = std::size(kAlgorithms);
constexpr std::size_t kBig = kAlgorithmCount - 2, kChunked = kAlgorithmCount - 1;

// Returns the algorithm of a seed. The big ones are rare, because they are slow.
std::size_t algorithm_of(std::uint64_t seed) {
  return seed % 64 == 0 ? kBig : seed % 64 == 32 ? kChunked : seed % kBig;
}

// Returns the setting of a seed. Long payloads pass in longer segments.
Setting setting_for(std::uint64_t seed, std::size_t k) {
  Setting setting = setting_of(seed, kAlgorithms[k].is_private);
  if (k < kBig) return setting;
  setting.link_faults.window_bytes = std::max<std::size_t>(setting.link_faults.window_bytes, 8192);
  if (setting.habits.bytes_at_once > 0) setting.habits.bytes_at_once = 4096;
  return setting;
}

// Quiet runs, each made once.
class Quiet {
 public:
  Quiet() {
    for (const Algorithm& algorithm : kAlgorithms) {
      loaded_.push_back(experiment_of(algorithm.algorithm, algorithm.dim));
      ends_.push_back(SimulatedSession(loaded_.back(), {}, 1, nullptr).run());
      EXPECT_EQ(ends_.back().trouble, "") << algorithm.algorithm;
      EXPECT_EQ(ends_.back().states.size(), kRounds);
    }
  }
  const LoadedExperiment& loaded(std::size_t k) const { return loaded_[k]; }
  const End& end(std::size_t k) const { return ends_[k]; }

 private:
  std::deque<LoadedExperiment> loaded_;
  std::vector<End> ends_;
};

TEST(SessionSimulation, EveryCommittedRoundHasTheBitsOfAQuietRunUnderAnyFaults) {
  const Quiet quiet;
  const auto [first, last, one] = seeds_asked(kSeeds);
  std::uint64_t server_deaths = 0, client_deaths = 0, with_sums = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const std::size_t k = algorithm_of(seed);
    const End end = SimulatedSession(quiet.loaded(k), setting_for(seed, k), seed, &quiet.end(k)).run();
    ASSERT_EQ(end.trouble, "") << kAlgorithms[k].algorithm << "again: GRADWIRE_SEED=" << seed
                               << " build/release/tests/simulated_session_tests";
    server_deaths += end.server_deaths;
    client_deaths += end.client_deaths;
    with_sums += end.took_sums ? 1 : 0;
  }
  if (one) return;
  std::printf("%llu seeds, %llu deaths of servers, %llu of clients\n", static_cast<unsigned long long>(last),
              static_cast<unsigned long long>(server_deaths), static_cast<unsigned long long>(client_deaths));
  EXPECT_GT(server_deaths, last / 2) << "the simulation has too few faults";
  EXPECT_GT(client_deaths, last / 2);
  EXPECT_GT(with_sums, last / 50);
}

// Returns rows of client `c`, of which only some clients have the last features.
ClientDataset rows_of_client(std::uint32_t c) {
  ClientDataset own;
  own.train.columns = 6 + c % 3;
  Random random(c, "rows");
  for (std::uint32_t r = 0; r < 8 + c; ++r) {
    for (std::uint32_t j = 0; j < own.train.columns; ++j) {
      if (random.below(4) == 0) continue;
      own.train.column.push_back(j);
      own.train.value.push_back(1000.0 * j + random.uniform());
    }
    own.train.row_start.push_back(own.train.column.size());
    own.train.label.push_back(r % 2 == 0 ? 1 : -1);
  }
  return own;
}

TEST(SessionSimulation, EveryRoundHasTheBitsOfAQuietRunOnFeaturesNormalizedByAllClients) {
  std::deque<LoadedExperiment> loaded;
  std::vector<End> quiet;
  Setting calm;
  calm.data = [](std::uint32_t c) {
    ClientData data;
    data.part = {c, kClients};  // fixes its number
    data.load = [c](const ExperimentSpec&, const Log&) { return rows_of_client(c); };
    return data;
  };
  for (const std::string kind : {"standard", "minmax"}) {
    loaded.push_back(parse_experiment("[problem]\nkind = \"logistic\"\ndata = \"csv:own\"\nnormalize = \"" +
                                          kind + "\"\n[clients]\ncount = " + std::to_string(kClients) +
                                          "\n[algorithm]\nname = \"ef21\"\ncompressor = \"topk:k=2\"\n",
                                      "simulation.toml"));
    quiet.push_back(SimulatedSession(loaded.back(), calm, 1, nullptr).run());
    ASSERT_EQ(quiet.back().trouble, "");
    std::vector<ClientDataset> parts;
    for (std::uint32_t c = 0; c < kClients; ++c) parts.push_back(rows_of_client(c));
    const SharedSamples all(parts);
    EXPECT_EQ(*quiet.back().normalization,
              normalization_of(all.train, all.train_shares, normalize_of(loaded.back().experiment)));
  }
  const auto [first, last, one] = seeds_asked(kSeeds / 4);
  std::uint64_t server_deaths = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const std::size_t k = seed % 2;
    Setting setting = setting_of(seed, false);
    setting.data = calm.data;
    if (seed % 4 < 2) setting.events_between_deaths = 50;  // some servers die in the handshake
    const End end = SimulatedSession(loaded[k], setting, seed, &quiet[k]).run();
    ASSERT_EQ(end.trouble, "") << "again: GRADWIRE_SEED=" << seed
                               << " build/release/tests/simulated_session_tests";
    ASSERT_TRUE(end.normalization);
    EXPECT_EQ(*end.normalization, *quiet[k].normalization) << seed;
    server_deaths += end.server_deaths;
  }
  if (!one) {
    EXPECT_GT(server_deaths, last) << "the simulation has too few faults";
  }
}

TEST(SessionSimulation, FinishesWithMemoryForOneReplyAtATime) {
  const Quiet quiet;
  const auto [first, last, one] = seeds_asked(kSeeds / 8);
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const std::size_t k = seed % 8 == 0 ? kBig : algorithm_of(seed);
    Setting setting = setting_for(seed, k);
    setting.receive_budget_bytes = 1;
    const End end = SimulatedSession(quiet.loaded(k), setting, seed, &quiet.end(k)).run();
    ASSERT_EQ(end.trouble, "") << kAlgorithms[k].algorithm << "again: GRADWIRE_SEED=" << seed
                               << " build/release/tests/simulated_session_tests";
  }
}

TEST(SessionSimulation, EveryCommittedRoundHasTheBitsOfAQuietRunOverTls) {
  const Quiet quiet;
  SecureWorld world;
  const auto [first, last, one] = seeds_asked(kSecureSeeds);
  std::uint64_t server_deaths = 0, client_deaths = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const std::size_t k = algorithm_of(seed);
    Setting setting = setting_for(seed, k);
    setting.secure = &world;
    // The handshake of OpenSSL 3.5 has keys of a kilobyte, and must pass in five seconds.
    setting.link_faults.window_bytes = std::max<std::size_t>(setting.link_faults.window_bytes, 4096);
    const End end = SimulatedSession(quiet.loaded(k), setting, seed, &quiet.end(k)).run();
    ASSERT_EQ(end.trouble, "") << kAlgorithms[k].algorithm << "again: GRADWIRE_SEED=" << seed
                               << " build/release/tests/simulated_session_tests";
    server_deaths += end.server_deaths;
    client_deaths += end.client_deaths;
  }
  if (one) return;
  EXPECT_GT(server_deaths, last / 2) << "the simulation has too few faults";
  EXPECT_GT(client_deaths, last / 2);
}

TEST(SessionSimulation, ReachesTheStateOfTheAnsweringClientsWithAQuorum) {
  const auto [first, last, one] = seeds_asked(kSeeds / 4);
  std::deque<LoadedExperiment> loaded;
  for (const Algorithm& algorithm : kAlgorithms) {
    const std::string name = algorithm.algorithm;
    const bool samples =
        name.find("fedavg") != std::string::npos || name.find("scaffold") != std::string::npos;
    loaded.push_back(experiment_of(name, algorithm.dim, samples ? "participation = 0.5\n" : ""));
  }
  std::size_t fewest = SIZE_MAX;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const std::size_t k = algorithm_of(seed);
    Setting setting = setting_for(seed, k);
    Random random(seed, "quorum");
    setting.quorum = 0.2 + 0.2 * static_cast<double>(random.below(4));
    setting.over_selection = 0.5 * static_cast<double>(random.below(3));
    const End end = SimulatedSession(loaded[k], setting, seed, nullptr).run();
    ASSERT_EQ(end.trouble, "") << kAlgorithms[k].algorithm << "again: GRADWIRE_SEED=" << seed
                               << " build/release/tests/simulated_session_tests";
    fewest = std::min(fewest, end.fewest_replies);
  }
  if (!one) {
    EXPECT_LE(fewest, 2u) << "the simulation waits for all clients";
  }
}

TEST(SessionSimulation, GivesAClientThatJoinsLateOneNumberForGood) {
  const std::string start = "[server]\nstart_share = 0.6\nquorum = 0.4\n";
  const LoadedExperiment loaded[] = {
      experiment_of("name = \"gd\"\nstep_size = 0.05\n" + start, "12"),
      experiment_of("name = \"ef21\"\ncompressor = \"topk:k=2\"\nstep_size = 0.02\n" + start, "12"),
      experiment_of("name = \"fedavg\"\nlocal_steps = 2\nlocal_step_size = 0.02\n" + start, "12")};
  const auto [first, last, one] = seeds_asked(kSeeds);
  std::uint64_t server_deaths = 0, late_joins = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    Setting setting = setting_of(seed, false);
    setting.start_with = 3;
    setting.quorum = 0.4;
    setting.late_seconds = seed % 2 == 0 ? 60 : 2;
    if (seed % 4 < 2) setting.calls_between_deaths = 4;  // many servers die near a join
    const End end = SimulatedSession(loaded[seed % 3], setting, seed, nullptr).run();
    ASSERT_EQ(end.trouble, "") << "again: GRADWIRE_SEED=" << seed
                               << " build/release/tests/simulated_session_tests";
    server_deaths += end.server_deaths;
    late_joins += end.late_joins;
  }
  if (one) return;
  EXPECT_GT(server_deaths, last) << "the simulation has too few faults";
  EXPECT_GT(late_joins, last / 2);
}

TEST(SessionSimulation, RepeatsTheRunOfASeed) {
  const LoadedExperiment loaded = experiment_of(kAlgorithms[0].algorithm, "12");
  const End quiet = SimulatedSession(loaded, {}, 1, nullptr).run();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Setting setting = setting_of(seed, false);
    const End a = SimulatedSession(loaded, setting, seed, &quiet).run();
    const End b = SimulatedSession(loaded, setting, seed, &quiet).run();
    EXPECT_EQ(a.seconds, b.seconds);
    EXPECT_EQ(a.uplink_bytes, b.uplink_bytes);
    EXPECT_EQ(a.client_deaths, b.client_deaths);
  }
}

TEST(SessionSimulation, CompletesManyRepliesFromChunks) {
  const Algorithm& chunked = kAlgorithms[kChunked];
  const LoadedExperiment loaded = experiment_of(chunked.algorithm, chunked.dim);
  const End quiet = SimulatedSession(loaded, {}, 1, nullptr).run();
  const std::uint64_t payloads = kRounds * kClients * std::stoull(chunked.dim) / 2 * sizeof(double);
  EXPECT_GT(quiet.bytes_in_chunks, payloads / 4);
  Setting setting;
  setting.link_faults.cut = 0.05;
  setting.link_faults.window_bytes = 32'768;
  setting.habits.dies = 0.05;
  const End end = SimulatedSession(loaded, setting, 5, &quiet).run();
  EXPECT_EQ(end.trouble, "");
  EXPECT_GT(end.client_deaths, 0u);
  EXPECT_GT(end.chunks, quiet.chunks) << "some are sent again";
}

// The payload is 160 KB in segments of 8 KB, each of which may be the connection's last. A reply that
// restarted from the beginning each time would hardly ever arrive.
TEST(SessionSimulation, ResumesAnUploadWhereItsConnectionBroke) {
  const Algorithm& big = kAlgorithms[kBig];
  const LoadedExperiment loaded = experiment_of(big.algorithm, big.dim);
  const End quiet = SimulatedSession(loaded, {}, 1, nullptr).run();
  Setting setting;
  setting.link_faults.cut = 0.08;
  setting.link_faults.window_bytes = 8192;
  const End end = SimulatedSession(loaded, setting, 3, &quiet).run();
  EXPECT_EQ(end.trouble, "");
  std::printf("sent %.2f times what a quiet run sends\n",
              static_cast<double>(end.uplink_bytes) / static_cast<double>(quiet.uplink_bytes));
  EXPECT_LT(end.uplink_bytes, 2 * quiet.uplink_bytes);
}

}  // namespace
}  // namespace gradwire
