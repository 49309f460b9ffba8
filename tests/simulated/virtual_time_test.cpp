// Asynchronous methods, and synchronous ones, on the virtual clock of a simulation.
#include "experiments/simulate/virtual_time.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <map>

#include "tests/simulated/virtual_run.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_for;
using testing::spec_of;

TEST(VirtualTime, GivesTheSameBitsForAnyThreadsEncodedAndHoweverOneEvaluates) {
  const Federation<double> federation(6, 9);
  for (const AlgorithmSpec& spec : asynchronous_specs()) {
    SCOPED_TRACE(spec.name);
    const auto setup = federation.setup(spec);
    const AsyncTrace one = run_virtual(federation, setup, 150, with(drawn));
    ASSERT_EQ(one.used.size(), 150u);
    VirtualTimeOptions options = on_threads(4, with(drawn));
    EXPECT_EQ(run_virtual(federation, setup, 150, options).model, one.model);
    options.encoded = true;
    const AsyncTrace encoded = run_virtual(federation, setup, 150, options);
    EXPECT_EQ(encoded.model, one.model);
    EXPECT_EQ(encoded.totals.bytes_up, one.totals.bytes_up);
    EXPECT_EQ(encoded.totals.bytes_down, one.totals.bytes_down);
    EXPECT_EQ(run_virtual(federation, setup, 150, with(drawn), Evaluate::kNever).model, one.model);
    EXPECT_GT(one.rows.size(), 30u);
  }
}

TEST(VirtualTime, ComputesNothingThatIsStopped) {
  const Federation<double> federation(50, 4);
  const AlgorithmSpec spec = spec_of("ringmaster", "identity", {{"delay_threshold", "2"}}, "0.05");
  const AsyncTrace trace =
      run_virtual(federation, federation.setup(spec), 400, with(linear), Evaluate::kNever);
  EXPECT_EQ(trace.computed, 400u);
  EXPECT_GT(trace.tickets, 1000u) << "clients are stopped again and again";
}

// What is superseded may have changed what the client remembers, or lacks, whoever computed it.
TEST(VirtualTime, GivesTheSameBitsForAnyThreadsWhereSlowClientsWithStateMissRounds) {
  const Federation<double> federation(6, 9);
  for (const MethodInfo& method : testing::synchronous_methods()) {
    if (method.facts.needs_all_replies) continue;
    SCOPED_TRACE(method.facts.name);
    const auto setup = federation.setup(spec_for(method));
    setup->keep_mirrors = true;
    RoundLimits limits;
    limits.quorum = 0.5;
    limits.deadline_seconds = 30;
    VirtualTimeOptions options = with(linear);
    const bool is_private = has(method.facts.client_state, ClientState::kPrivate);
    options.faults = {.duplicates = 0.2, .crashes = is_private ? 0 : 0.2};
    const AsyncTrace one = run_virtual(federation, setup, 30, options, Evaluate::kByClients, limits);
    EXPECT_EQ(run_virtual(federation, setup, 30, on_threads(4, options), Evaluate::kByClients, limits).model,
              one.model);
  }
}

TEST(VirtualTime, ASynchronousRoundTakesAsLongAsItsSlowestClientAndHasTheBitsOfARunWithoutAClock) {
  const Federation<double> federation(4, 8);
  for (const MethodInfo& method : testing::synchronous_methods()) {
    SCOPED_TRACE(method.facts.name);
    const auto setup = federation.setup(spec_for(method));
    const AsyncTrace trace = run_virtual(federation, setup, 10, with(linear));
    const auto plain = testing::run<double>(federation, setup, 10);
    EXPECT_EQ(trace.model, plain.model);
    EXPECT_EQ(trace.rows.back().bits_up, plain.records.back().bits_up);
    EXPECT_EQ(trace.rows.back().loss, plain.records.back().loss);
    const bool samples =
        method.facts.name == "pp_marina" || method.facts.name == "page";  // some of the clients
    EXPECT_TRUE(samples ? trace.seconds < 40 : trace.seconds == 40)
        << trace.seconds << " for ten rounds of 4 s";
  }
}

TEST(VirtualTime, WithEveryFaultAllRepliesThatAreNeededComeInTheEnd) {
  const Federation<double> federation(5, 6);
  RoundLimits limits;
  limits.deadline_seconds = 10;
  limits.attempts = 100;
  for (const AlgorithmSpec& spec : asynchronous_specs()) {
    SCOPED_TRACE(spec.name);
    VirtualTimeOptions options = with(drawn);
    options.faults = {
        .lost_replies = 0.2, .lost_requests = 0.2, .duplicates = 0.2, .crashes = 0.1, .wiped = 0.1};
    const auto setup = federation.setup(spec);
    const AsyncTrace one = run_virtual(federation, setup, 400, options, Evaluate::kByClients, limits);
    EXPECT_EQ(one.used.size(), 400u);
    std::map<ClientId, int> replies;
    for (const ClientId c : one.used) replies[c] += 1;
    for (ClientId c = 0; c < 5; ++c) EXPECT_GT(replies[c], 15) << "client " << c << " was forgotten";
    options = on_threads(3, options);
    options.encoded = true;
    EXPECT_EQ(run_virtual(federation, setup, 400, options, Evaluate::kByClients, limits).model, one.model);
  }
}

TEST(VirtualTime, AClientThatNeverAnswersStopsNobodyElse) {
  const Federation<double> federation(3, 5);
  const auto setup = federation.setup(spec_of("ringmaster", "identity", {{"delay_threshold", "3"}}, "0.1"));
  const auto seconds = [](ClientId i, std::uint64_t) {
    return i == 1 ? std::numeric_limits<double>::infinity() : 1.0 + i;
  };
  const AsyncTrace trace = run_virtual(federation, setup, 60, with(seconds));
  EXPECT_EQ(trace.used.size(), 60u);
  EXPECT_EQ(std::count(trace.used.begin(), trace.used.end(), 1u), 0);
}

}  // namespace
}  // namespace gradwire
