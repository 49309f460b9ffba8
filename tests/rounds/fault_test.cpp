// Tests that a lossy network and crashing clients change no bit.
#include <gtest/gtest.h>

#include "base/serialize.h"
#include "tests/algorithms/every_algorithm.h"
#include "tests/algorithms/federation.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::run;
using testing::spec_for;
using testing::spec_of;
using testing::Trace;

Faults bad_network() {
  Faults faults;
  faults.lost_replies = 0.10;
  faults.lost_requests = 0.05;
  faults.duplicates = 0.10;
  faults.crashes = 0.02;
  faults.state_loss = 0.02;
  faults.shuffle = true;
  return faults;
}

Faults bad_network_for(const AlgorithmTraits& traits) {
  Faults faults = bad_network();
  if (has(traits.client_state, ClientState::kPrivate)) faults.state_loss = faults.crashes = 0;
  return faults;
}

template <class Real>
void expect_same_bits(const Trace<Real>& got, const Trace<Real>& want, const std::string& what) {
  EXPECT_EQ(got.server_state, want.server_state) << what << ": state of the server";
  EXPECT_EQ(got.client_states, want.client_states) << what << ": states of the clients";
  ASSERT_EQ(got.records.size(), want.records.size()) << what;
  for (std::size_t k = 0; k < got.records.size(); ++k) {
    EXPECT_EQ(got.records[k].loss, want.records[k].loss) << what << " row " << k;
    EXPECT_EQ(got.records[k].grad_norm_sq, want.records[k].grad_norm_sq) << what << " row " << k;
    EXPECT_EQ(got.records[k].bits_up, want.records[k].bits_up) << what << " row " << k;
    EXPECT_EQ(got.records[k].bytes_up, want.records[k].bytes_up) << what << " row " << k;
    EXPECT_EQ(got.records[k].bytes_down, want.records[k].bytes_down) << what << " row " << k;
  }
}

// So many rounds that each client that loses its state is asked again, and has its state at the end.
constexpr std::uint32_t kFaultRounds = 60;

template <class Real>
void faults_change_nothing() {
  const Federation<Real> federation(8, 12);
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    const auto run_context = federation.run_context(spec_for(algorithm));
    run_context->keep_client_state_replicas = true;
    const auto quiet = run<Real>(federation, run_context, kFaultRounds);
    for (const unsigned threads : {1u, 4u}) {
      for (const bool encoded : {false, true}) {
        FaultSimulationOptions options;
        options.threads = threads;
        options.encoded = encoded;
        const std::string what = std::string(algorithm.traits.name) + (encoded ? " encoded" : "") + ", " +
                                 std::to_string(threads) + " threads";
        expect_same_bits(run<Real>(federation, run_context, kFaultRounds, options), quiet, what);
        options.faults = bad_network_for(algorithm.traits);
        expect_same_bits(run<Real>(federation, run_context, kFaultRounds, options), quiet, what + ", faults");
      }
    }
  }
}

TEST(Snapshot, SavingAndLoadingTheServerAfterEveryRoundChangesNoBit) {
  const Federation<double> federation(8, 12);
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    const auto run_context = federation.run_context(spec_for(algorithm));
    run_context->keep_client_state_replicas = true;
    const auto reload = [](std::uint32_t, ServerAlgorithm<double>& server, FaultSimulation<double>&,
                           RunProgress&) {
      const std::string state = server.save();
      ASSERT_TRUE(server.load(state));
      EXPECT_EQ(server.save(), state);
      EXPECT_FALSE(server.load(state.substr(0, state.size() - 1)));
      ASSERT_TRUE(server.load(state));
    };
    expect_same_bits(run<double>(federation, run_context, 50, {}, {}, reload),
                     run<double>(federation, run_context, 50), std::string(algorithm.traits.name));
  }
}

TEST(Faults, ChangeNoBitOfAnyAlgorithmInDouble) { faults_change_nothing<double>(); }
TEST(Faults, ChangeNoBitOfAnyAlgorithmInFloat) { faults_change_nothing<float>(); }

TEST(Faults, OccurDuringTheRun) {
  const Federation<double> federation(8, 12);
  const auto run_context = federation.run_context(spec_of("ef21", "topk:k=2"));
  run_context->keep_client_state_replicas = true;
  FaultSimulationOptions options;
  options.faults = bad_network();
  const auto trace = run<double>(federation, run_context, 150, options);
  int asked_again = 0, restored = 0;
  for (const std::string& note : trace.notes) {
    asked_again += note.find("asking them again") != std::string::npos;
    restored += note.find("sending it back") != std::string::npos;
  }
  EXPECT_GT(asked_again, 50);
  EXPECT_GT(restored, 5);
}

TEST(Faults, EndTheRunWithAClearErrorForAWipedClientWithoutReplicas) {
  const Federation<double> federation(4, 12);
  const auto run_context = federation.run_context(spec_of("ef21", "topk:k=2"));
  FaultSimulationOptions options;
  options.faults.state_loss = 0.1;
  try {
    run<double>(federation, run_context, 100, options);
    FAIL() << "the loss of g_i went unnoticed";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("lost its state, and the server has no copy of it"),
              std::string::npos)
        << e.what();
    EXPECT_NE(std::string(e.what()).find("server.client_state_replicas"), std::string::npos) << e.what();
  }
}

// MARINA needs no replica: one gradient at x^{t−1} restores a client.
TEST(Faults, LetWipedMarinaClientsRecomputeTheirStateWithoutReplicas) {
  const Federation<double> federation(8, 12);
  const auto run_context = federation.run_context(spec_of("marina", "randk:k=3"));
  FaultSimulationOptions options;
  options.faults = bad_network();
  expect_same_bits(run<double>(federation, run_context, 150, options),
                   run<double>(federation, run_context, 150), "marina");
}

TEST(SmallQuorum, KeepsTheServerAverageEqualToTheMeanOfCommittedShifts) {
  const Federation<double> federation(10, 12);
  const auto run_context = federation.run_context(spec_of("ef21", "topk:k=2"));
  run_context->keep_client_state_replicas = true;
  FaultSimulationOptions options;
  options.faults = bad_network();
  RoundLimits limits;
  limits.quorum = 0.6;
  int short_rounds = 0;
  const auto trace = run<double>(
      federation, run_context, 300, options, limits,
      [&](std::uint32_t round, ServerAlgorithm<double>& server, FaultSimulation<double>&, RunProgress&) {
        // The server's saved state: x, t, g, then the replicas of g_i, each with its length.
        const std::string state = server.save();
        Loader loader(state);
        Vec<double> x, g;
        std::uint32_t t = 0;
        std::vector<Vec<double>> g_of;
        loader(x), loader(t), loader(g), loader(g_of);
        ASSERT_TRUE(loader.done());
        for (std::size_t j = 0; j < g.size(); ++j) {
          double mean = 0;
          for (const auto& row : g_of) mean += row.empty() ? 0 : row[j] / 10;
          EXPECT_NEAR(g[j], mean, 1e-12) << "round " << round;
        }
      });
  for (std::size_t k = 1; k < trace.records.size(); ++k) short_rounds += trace.records[k].replies < 10;
  EXPECT_GT(short_rounds, 100);
  // The clients committed the state of the replicas.
  Loader loader(trace.server_state);
  Vec<double> x, g;
  std::uint32_t t = 0;
  std::vector<Vec<double>> g_of;
  loader(x), loader(t), loader(g), loader(g_of);
  Vec<double> mean(g.size());
  std::size_t checked = 0;
  for (std::size_t i = 0; i < trace.client_states.size(); ++i) {
    Loader client(trace.client_states[i]);
    Vec<double> g_i;
    client(g_i);
    // The shutdown that commits may itself have been lost; then the client is one step late.
    checked += g_i == g_of[i];
  }
  EXPECT_GE(checked, 7u);
  EXPECT_LT(federation.gap(trace.model), 1e-3);
}

TEST(Quorum, EndsTheRunAfterBoundedAttemptsAndNamesTheMissing) {
  const Federation<double> federation(4, 6);
  const auto run_context = federation.run_context(spec_of("gd"));
  FaultSimulationOptions options;
  options.faults.lost_replies = 1.0;
  FaultSimulation<double> transport(run_context, federation.oracle_pointers(), options);
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 3;
  limits.attempts = 4;
  limits.evaluate_every = 0;
  try {
    run_rounds<double>(*server, find_algorithm("gd").traits, *run_context, transport, progress, limits, {});
    FAIL() << "a run without replies ended well";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("round 0: 0 of 4"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("clients 0, 1, 2, 3"), std::string::npos) << e.what();
  }
}

// A transport whose client keeps connecting and leaving, and never answers.
class Flapping final : public Transport<double> {
 public:
  std::uint64_t send(ClientId, const Request<double>&) override { return 0; }
  const Event<double>& next(double) override {
    clock_ += 0.01;
    event_.kind = (comes_ = !comes_) ? Event<double>::Kind::kJoined : Event<double>::Kind::kLeft;
    return event_;
  }
  double now() const override { return clock_; }

 private:
  Event<double> event_;
  double clock_ = 0;
  bool comes_ = false;
};

TEST(Quorum, EndsTheRunAlthoughAClientKeepsReconnecting) {
  const Federation<double> federation(2, 6);
  const auto run_context = federation.run_context(spec_of("gd"));
  Flapping transport;
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 1;
  limits.evaluate_every = 0;
  EXPECT_THROW(
      run_rounds<double>(*server, find_algorithm("gd").traits, *run_context, transport, progress, limits, {}),
      std::runtime_error);
  EXPECT_NEAR(transport.now(), limits.attempts * limits.deadline_seconds, 1);
}

// Runs a server and returns its final state. With `restart`, the server dies and restarts from a snapshot
// that is seven rounds old, so its clients are ahead of it.
template <class Real>
std::string final_state_with_restart(const Federation<Real>& federation,
                                     std::shared_ptr<const RunContext<Real>> run_context,
                                     std::uint32_t rounds, bool restart) {
  FaultSimulation<Real> transport(run_context, federation.oracle_pointers(), {});
  auto server = make_server<Real>(run_context);
  const AlgorithmTraits traits = find_algorithm(run_context->algorithm.name).traits;
  RunProgress progress, old_progress;
  std::string snapshot;
  RoundLimits limits;
  limits.evaluate_every = 0;
  limits.rounds = restart ? 40 : rounds;
  LoopHooks<Real> hooks;
  hooks.on_round = [&](std::uint32_t k) {
    if (k != 33) return;
    snapshot = server->save();
    old_progress = progress;
  };
  run_rounds<Real>(*server, traits, *run_context, transport, progress, limits, hooks);
  if (restart) {
    server = make_server<Real>(run_context);
    EXPECT_TRUE(server->load(snapshot));
    old_progress.request_id = progress.request_id;  // request ids never repeat
    limits.rounds = rounds;
    run_rounds<Real>(*server, traits, *run_context, transport, old_progress, limits, {});
  }
  return server->save();
}

TEST(ServerRestart, ReachesTheSameBitsFromAnOlderSnapshot) {
  const Federation<double> federation(6, 12);
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    if (has(algorithm.traits.client_state, ClientState::kPrivate)) continue;  // clients cannot be rolled back
    const auto run_context = federation.run_context(spec_for(algorithm));
    run_context->keep_client_state_replicas = true;
    EXPECT_EQ(final_state_with_restart<double>(federation, run_context, 80, true),
              final_state_with_restart<double>(federation, run_context, 80, false))
        << algorithm.traits.name;
  }
}

TEST(Divergence, EndsARunWithATooLargeStep) {
  const Federation<double> federation(4, 6);
  const auto run_context = federation.run_context(spec_of("gd", "identity", {}, "1e200"));
  const auto trace = run<double>(federation, run_context, 50);
  EXPECT_EQ(trace.outcome, Outcome::kDiverged);
}

// Runs with four clients; `broken` of them never have a finite gradient.
Trace<double> run_with_broken_clients(std::uint32_t broken, double quorum, std::uint32_t evaluate_every) {
  Federation<double> federation(4, 6);
  for (std::uint32_t i = 0; i < broken; ++i) federation.oracles[i]->b[0] = std::nan("");
  const auto run_context = federation.run_context(spec_of("gd", "identity", {}, "0.5"));
  RoundLimits limits;
  limits.quorum = quorum;
  limits.evaluate_every = evaluate_every;
  return run<double>(federation, run_context, 30, {}, limits);
}

TEST(Divergence, CannotBeCausedByClientsThatAreNotNeeded) {
  for (const std::uint32_t evaluate_every : {0, 5}) {
    const auto trace = run_with_broken_clients(2, 0.5, evaluate_every);
    EXPECT_EQ(trace.outcome, Outcome::kFinished);
    for (const double x : trace.model) EXPECT_TRUE(std::isfinite(x));
    const auto names = [](const std::string& note) {
      return note.find("gradient of client 1 is not a finite number; counting it as missing") !=
             std::string::npos;
    };
    EXPECT_TRUE(std::any_of(trace.notes.begin(), trace.notes.end(), names));
    for (const RoundRecord& record : trace.records) EXPECT_EQ(record.replies, record.round > 0 ? 2u : 0u);
  }
}

TEST(Divergence, EndsTheRunIfNoQuorumOfFiniteAnswersIsLeft) {
  for (const std::uint32_t evaluate_every : {0, 5}) {
    EXPECT_EQ(run_with_broken_clients(3, 0.5, evaluate_every).outcome, Outcome::kDiverged);
    EXPECT_EQ(run_with_broken_clients(1, 1, evaluate_every).outcome, Outcome::kDiverged);
    EXPECT_EQ(run_with_broken_clients(4, 0.25, evaluate_every).outcome, Outcome::kDiverged);
  }
}

TEST(Quorum, WaitsForTheFirstRequestAsLongAsTheLimitsSay) {
  const Federation<double> federation(2, 6);
  const auto run_context = federation.run_context(spec_of("gd"));
  const auto server = make_server<double>(run_context);
  for (const double seconds : {10.0, 5000.0}) {
    Flapping transport;
    RunProgress progress;
    RoundLimits limits;
    limits.rounds = 1;
    limits.evaluate_every = 0;
    limits.deadline_seconds = 5;
    limits.first_wait_seconds = seconds;
    EXPECT_THROW(run_rounds<double>(*server, find_algorithm("gd").traits, *run_context, transport, progress,
                                    limits, {}),
                 std::runtime_error);
    EXPECT_NEAR(transport.now(), std::max(seconds, limits.attempts * limits.deadline_seconds), 1);
  }
}

TEST(Quorum, ReportsAStalledRoundAtGrowingIntervals) {
  const Federation<double> federation(2, 6);
  const auto run_context = federation.run_context(spec_of("gd"));
  const auto server = make_server<double>(run_context);
  for (const double deadline : {3.0, 60.0}) {
    Flapping transport;
    RunProgress progress;
    RoundLimits limits;
    limits.rounds = 1;
    limits.evaluate_every = 0;
    limits.deadline_seconds = deadline;
    std::vector<double> waited;
    std::vector<std::string> notes;
    LoopHooks<double> hooks;
    hooks.on_note = [&](const LogLine& line) { notes.push_back(line.text); };
    hooks.on_stall = [&](const StalledRound& stall) {
      waited.push_back(stall.waited_seconds);
      EXPECT_EQ(stall.needed, 2u);
      EXPECT_EQ(std::vector<ClientId>(stall.missing.begin(), stall.missing.end()),
                (std::vector<ClientId>{0, 1}));
      EXPECT_NEAR(stall.waited_seconds + stall.left_seconds, limits.attempts * deadline, 0.1);
      EXPECT_EQ(stall.past_deadline, stall.waited_seconds >= deadline);
    };
    EXPECT_THROW(run_rounds<double>(*server, find_algorithm("gd").traits, *run_context, transport, progress,
                                    limits, hooks),
                 std::runtime_error);
    const double first = std::min(5.0, deadline);
    ASSERT_GE(waited.size(), 4u);
    EXPECT_LE(waited.size(), 8u);
    for (std::size_t k = 0; k < waited.size(); ++k)
      EXPECT_NEAR(waited[k] / (first * std::ldexp(1.0, static_cast<int>(k))), 1, 0.02) << k;
    for (const std::string& note : notes) EXPECT_EQ(note.find("asking them again"), note.npos) << note;
  }
}

// Clients never answer. The operator asks to stop after two seconds.
class StoppedTransport final : public Transport<double> {
 public:
  std::uint64_t send(ClientId, const Request<double>&) override { return 0; }
  const Event<double>& next(double deadline) override {
    event_.kind = Event<double>::Kind::kTimeout;
    if (clock_ < kStopSeconds && deadline >= kStopSeconds) {
      clock_ = kStopSeconds;
      event_.kind = Event<double>::Kind::kStopped;
    } else {
      clock_ = deadline;
    }
    return event_;
  }
  double now() const override { return clock_; }
  static constexpr double kStopSeconds = 2;

 private:
  Event<double> event_;
  double clock_ = 0;
};

TEST(Stop, DoesNotWaitForClientsThatAreNotConnected) {
  const Federation<double> federation(3, 6);
  for (const std::string name : {"gd", "asgd"}) {
    const auto run_context = federation.run_context(spec_of(name));
    // Returns the time at which the run stops if clients 0 .. connected - 1 are there until `leave`.
    const auto stopped_at = [&](ClientId connected, double leave) {
      StoppedTransport transport;
      RunProgress progress;
      RoundLimits limits;
      limits.rounds = 1;
      limits.evaluate_every = 0;
      limits.deadline_seconds = 60;
      limits.keep_clients = true;
      LoopHooks<double> hooks;
      hooks.on_stall = [](const StalledRound&) {};
      hooks.is_connected = [&](ClientId client) { return client < connected && transport.now() < leave; };
      const auto server = make_server<double>(run_context);
      EXPECT_EQ(run_rounds<double>(*server, find_algorithm(name).traits, *run_context, transport, progress,
                                   limits, hooks),
                Outcome::kStopped);
      EXPECT_EQ(progress.round, 0u);
      return transport.now();
    };
    EXPECT_EQ(stopped_at(0, 1e9), StoppedTransport::kStopSeconds) << name;
    EXPECT_EQ(stopped_at(2, 1e9), name == "gd" ? StoppedTransport::kStopSeconds : 60) << name;
    EXPECT_EQ(stopped_at(3, 1e9), 60) << "silent clients have until the deadline";
    EXPECT_EQ(stopped_at(3, 7.5), 8) << "a second after the clients left";
  }
}

TEST(SavedState, RejectsTruncatedAndOverlongBytes) {
  const Federation<double> federation(3, 5);
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    const auto run_context = federation.run_context(spec_for(algorithm));
    run_context->keep_client_state_replicas = true;
    const auto trace = run<double>(federation, run_context, 5);
    for (std::size_t size = 0; size < trace.server_state.size(); ++size)
      EXPECT_FALSE(make_server<double>(run_context)->load(trace.server_state.substr(0, size)))
          << algorithm.traits.name << size;
    EXPECT_FALSE(make_server<double>(run_context)->load(trace.server_state + "x"));
    EXPECT_TRUE(make_server<double>(run_context)->load(trace.server_state));
  }
}

}  // namespace
}  // namespace gradwire
