// Tests of asynchronous and synchronous algorithms on the virtual clock of a simulation.
#include "simulation/event_simulation.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <limits>
#include <map>

#include "storage/round_record.h"
#include "tests/simulated/virtual_run.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_for;
using testing::spec_of;

TEST(EventSimulation, GivesTheSameBitsForAnyThreadsEncodingAndEvaluation) {
  const Federation<double> federation(6, 9);
  for (const AlgorithmSpec& spec : asynchronous_specs()) {
    SCOPED_TRACE(spec.name);
    const auto run_context = federation.run_context(spec);
    const AsyncTrace one = run_virtual(federation, run_context, 150, with(drawn));
    ASSERT_EQ(one.used.size(), 150u);
    EventSimulationOptions options = on_threads(4, with(drawn));
    EXPECT_EQ(run_virtual(federation, run_context, 150, options).model, one.model);
    options.encoded = true;
    const AsyncTrace encoded = run_virtual(federation, run_context, 150, options);
    EXPECT_EQ(encoded.model, one.model);
    EXPECT_EQ(encoded.totals.bytes_up, one.totals.bytes_up);
    EXPECT_EQ(encoded.totals.bytes_down, one.totals.bytes_down);
    EXPECT_EQ(run_virtual(federation, run_context, 150, with(drawn), Evaluate::kNever).model, one.model);
    EXPECT_GT(one.rows.size(), 30u);
  }
}

TEST(EventSimulation, ComputesNoStoppedWork) {
  const Federation<double> federation(50, 4);
  const AlgorithmSpec spec = spec_of("ringmaster", "identity", {{"delay_threshold", "2"}}, "0.05");
  const AsyncTrace trace =
      run_virtual(federation, federation.run_context(spec), 400, with(linear), Evaluate::kNever);
  EXPECT_EQ(trace.computed, 400u);
  EXPECT_GT(trace.request_ids, 1000u) << "clients are stopped repeatedly";
}

// Threads may have computed requests that were then superseded, and so changed the states of clients.
TEST(EventSimulation, GivesTheSameBitsForAnyThreadsIfSlowClientsWithStateMissRounds) {
  const Federation<double> federation(6, 9);
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    if (algorithm.traits.needs_all_replies) continue;
    SCOPED_TRACE(algorithm.traits.name);
    const auto run_context = federation.run_context(spec_for(algorithm));
    run_context->keep_client_state_replicas = true;
    RoundLimits limits;
    limits.quorum = 0.5;
    limits.deadline_seconds = 30;
    EventSimulationOptions options = with(linear);
    const bool is_private = has(algorithm.traits.client_state, ClientState::kPrivate);
    options.faults = {.duplicates = 0.2, .crashes = is_private ? 0 : 0.2};
    const AsyncTrace one = run_virtual(federation, run_context, 30, options, Evaluate::kByClients, limits);
    EXPECT_EQ(
        run_virtual(federation, run_context, 30, on_threads(4, options), Evaluate::kByClients, limits).model,
        one.model);
  }
}

TEST(EventSimulation, TakesTheTimeOfTheSlowestClientInSynchronousRoundsWithTheSameBits) {
  const Federation<double> federation(4, 8);
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    SCOPED_TRACE(algorithm.traits.name);
    const auto run_context = federation.run_context(spec_for(algorithm));
    const AsyncTrace trace = run_virtual(federation, run_context, 10, with(linear));
    const auto plain = testing::run<double>(federation, run_context, 10);
    EXPECT_EQ(trace.model, plain.model);
    EXPECT_EQ(trace.rows.back().bits_up, plain.records.back().bits_up);
    EXPECT_EQ(trace.rows.back().loss, plain.records.back().loss);
    const bool samples =
        algorithm.traits.name == "pp_marina" || algorithm.traits.name == "page";  // they sample the clients
    EXPECT_TRUE(samples ? trace.seconds < 40 : trace.seconds == 40)
        << trace.seconds << " for ten rounds of 4 s";
  }
}

TEST(EventSimulation, GetsAllNeededRepliesDespiteEveryFault) {
  const Federation<double> federation(5, 6);
  RoundLimits limits;
  limits.deadline_seconds = 10;
  limits.attempts = 100;
  for (const AlgorithmSpec& spec : asynchronous_specs()) {
    SCOPED_TRACE(spec.name);
    EventSimulationOptions options = with(drawn);
    options.faults = {
        .lost_replies = 0.2, .lost_requests = 0.2, .duplicates = 0.2, .crashes = 0.1, .state_loss = 0.1};
    const auto run_context = federation.run_context(spec);
    const AsyncTrace one = run_virtual(federation, run_context, 400, options, Evaluate::kByClients, limits);
    EXPECT_EQ(one.used.size(), 400u);
    std::map<ClientId, int> replies;
    for (const ClientId c : one.used) replies[c] += 1;
    for (ClientId c = 0; c < 5; ++c) EXPECT_GT(replies[c], 15) << "client " << c << " was forgotten";
    options = on_threads(3, options);
    options.encoded = true;
    EXPECT_EQ(run_virtual(federation, run_context, 400, options, Evaluate::kByClients, limits).model,
              one.model);
  }
}

TEST(EventSimulation, ContinuesWithoutAClientThatNeverAnswers) {
  const Federation<double> federation(3, 5);
  const auto run_context =
      federation.run_context(spec_of("ringmaster", "identity", {{"delay_threshold", "3"}}, "0.1"));
  const auto seconds = [](ClientId i, std::uint64_t) {
    return i == 1 ? std::numeric_limits<double>::infinity() : 1.0 + i;
  };
  const AsyncTrace trace = run_virtual(federation, run_context, 60, with(seconds));
  EXPECT_EQ(trace.used.size(), 60u);
  EXPECT_EQ(std::count(trace.used.begin(), trace.used.end(), 1u), 0);
}

// The results of a run: all that a user or a later process can see.
struct Ending {
  std::string server, clients, work, progress;
  std::vector<RoundRecord> rows;
};

// Runs `rounds` rounds. After each round in `stops` the run stops and continues in other objects.
Ending run_with_stops(const Federation<double>& federation,
                      std::shared_ptr<const RunContext<double>> run_context, std::uint32_t rounds,
                      const EventSimulationOptions& options, RoundLimits limits,
                      std::vector<std::uint32_t> stops) {
  limits.rounds = rounds;
  limits.evaluate_every = 7;
  limits.keep_clients = true;
  RunProgress progress;
  progress.committed.resize(run_context->n);
  Ending ending;
  stops.push_back(rounds + 1);
  for (const std::uint32_t end : stops) {
    EventSimulation<double> clients(run_context, federation.oracle_pointers(), options);
    const auto server = make_server<double>(run_context);
    if (!ending.server.empty()) {
      EXPECT_TRUE(server->load(ending.server));
      EXPECT_TRUE(load_progress(ending.progress, progress));
      EXPECT_TRUE(clients.load_clients(ending.clients));
    }
    std::atomic<bool> stop = false;
    LoopHooks<double> hooks;
    hooks.stop = &stop;
    hooks.seconds = [&] { return clients.now(); };
    hooks.evaluate = [&](View<double> x, Evaluation<double>& to) { clients.evaluate(x, to); };
    hooks.on_record = [&](const RoundRecord& row) {
      while (!ending.rows.empty() && ending.rows.back().round >= row.round) ending.rows.pop_back();
      ending.rows.push_back(row);
    };
    hooks.on_round = [&](std::uint32_t round) { stop = round == end; };
    hooks.work = ending.work;
    hooks.between_rounds = [&](const std::function<std::string()>& save_work, bool) {
      if (progress.round < end && progress.round < rounds) return;
      ending.work = save_work();
      ending.clients = clients.save_clients(progress.committed);
      ending.server = server->save();
      ending.progress = save_progress(progress);
    };
    run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
    if (end <= rounds) ending.rows.pop_back();  // a resumed run measures it again
  }
  return ending;
}

void expect_equal(const Ending& resumed, const Ending& whole) {
  EXPECT_EQ(resumed.server, whole.server);
  EXPECT_EQ(resumed.work, whole.work);
  EXPECT_EQ(resumed.progress, whole.progress);
  ASSERT_EQ(resumed.rows.size(), whole.rows.size());
  for (std::size_t k = 0; k < whole.rows.size(); ++k) {
    EXPECT_EQ(resumed.rows[k].round, whole.rows[k].round);
    EXPECT_EQ(resumed.rows[k].loss, whole.rows[k].loss);
    EXPECT_EQ(resumed.rows[k].seconds, whole.rows[k].seconds);
    EXPECT_EQ(resumed.rows[k].bytes_down, whole.rows[k].bytes_down);
    EXPECT_EQ(resumed.rows[k].bits_down, whole.rows[k].bits_down);
    EXPECT_EQ(resumed.rows[k].grad_calls, whole.rows[k].grad_calls);
    EXPECT_EQ(resumed.rows[k].evaluation_bytes_up, whole.rows[k].evaluation_bytes_up);
  }
}

const std::vector<std::vector<std::uint32_t>> kStops = {{1}, {2, 3}, {50}, {10, 11, 77, 149}};

TEST(EventSimulation, ResumesEveryAsynchronousAlgorithmAtAnyRoundToTheSameBits) {
  const Federation<double> federation(6, 9);
  for (const AlgorithmSpec& spec : asynchronous_specs()) {
    const auto run_context = federation.run_context(spec);
    for (const bool encoded : {false, true}) {
      EventSimulationOptions options = with(drawn);
      options.encoded = encoded;
      const Ending whole = run_with_stops(federation, run_context, 150, options, {}, {});
      for (const auto& stops : kStops) {
        SCOPED_TRACE(spec.name + (encoded ? ", encoded" : "") + ", first stop " + std::to_string(stops[0]));
        const Ending resumed = run_with_stops(federation, run_context, 150, options, {}, stops);
        expect_equal(resumed, whole);
        EXPECT_EQ(resumed.clients, whole.clients);  // not with threads, which may have computed ahead
        expect_equal(run_with_stops(federation, run_context, 150, on_threads(3, options), {}, stops), whole);
      }
    }
  }
}

TEST(EventSimulation, ResumesToTheSameBitsDespiteEveryFault) {
  const Federation<double> federation(5, 6);
  RoundLimits limits;
  limits.deadline_seconds = 10;
  limits.attempts = 100;
  EventSimulationOptions options = with(drawn);
  options.faults = {
      .lost_replies = 0.2, .lost_requests = 0.2, .duplicates = 0.2, .crashes = 0.1, .state_loss = 0.1};
  for (const AlgorithmSpec& spec : asynchronous_specs()) {
    const auto run_context = federation.run_context(spec);
    const Ending whole = run_with_stops(federation, run_context, 150, options, limits, {});
    for (const auto& stops : kStops) {
      SCOPED_TRACE(spec.name + ", first stop " + std::to_string(stops[0]));
      const Ending resumed = run_with_stops(federation, run_context, 150, options, limits, stops);
      expect_equal(resumed, whole);
      EXPECT_EQ(resumed.clients, whole.clients);
    }
  }
}

TEST(EventSimulation, ResumesSynchronousAlgorithmsWithLateOrCrashingClients) {
  const Federation<double> federation(6, 9);
  for (const AlgorithmInfo& algorithm : testing::synchronous_algorithms()) {
    const auto run_context = federation.run_context(spec_for(algorithm));
    run_context->keep_client_state_replicas = true;
    RoundLimits limits;
    if (!algorithm.traits.needs_all_replies) limits.quorum = 0.5;
    limits.deadline_seconds = 30;
    EventSimulationOptions options = with(drawn);
    const bool is_private = has(algorithm.traits.client_state, ClientState::kPrivate);
    options.faults = {.duplicates = 0.2, .crashes = is_private ? 0 : 0.2};
    const Ending whole = run_with_stops(federation, run_context, 60, options, limits, {});
    for (const auto& stops : std::vector<std::vector<std::uint32_t>>{{1}, {9, 10, 33}}) {
      SCOPED_TRACE(std::string(algorithm.traits.name) + ", first stop " + std::to_string(stops[0]));
      const Ending resumed = run_with_stops(federation, run_context, 60, options, limits, stops);
      EXPECT_EQ(resumed.server, whole.server);
      EXPECT_EQ(resumed.progress, whole.progress);
    }
  }
}

TEST(EventSimulation, RejectsBytesThatAreNotItsSavedClients) {
  const Federation<double> federation(4, 5);
  const auto run_context = federation.run_context(asynchronous_specs()[0]);
  const std::string saved = run_with_stops(federation, run_context, 30, with(drawn), {}, {}).clients;
  const auto loads = [&](std::string_view bytes) {
    return EventSimulation<double>(run_context, federation.oracle_pointers(), with(drawn))
        .load_clients(bytes);
  };
  EXPECT_TRUE(loads(saved));
  for (std::size_t size = 0; size < saved.size(); ++size) EXPECT_FALSE(loads(saved.substr(0, size))) << size;
  EXPECT_FALSE(loads(saved + "x"));
}

}  // namespace
}  // namespace gradwire
