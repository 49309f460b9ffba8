// Tests the promises of the driver of asynchronous algorithms.
#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "tests/simulated/virtual_run.h"

namespace gradwire {
namespace {

using testing::Federation;
using testing::spec_of;

// A wrapper of a transport that checks what the driver sends.
class Watched final : public Transport<double> {
 public:
  explicit Watched(Transport<double>& inner) : inner_(inner) {}
  std::uint64_t send(ClientId client, const Request<double>& request) override {
    if (request.kind == RequestKind::kRound) {
      const View<double> x = request.body->parts[0].values;
      const auto [at, is_new] = sent_.try_emplace(request.request_id, x.begin(), x.end());
      EXPECT_TRUE(is_new || std::equal(x.begin(), x.end(), at->second.begin()))
          << "request id " << request.request_id << " is sent with another body";
      works_at_[client] = request.request_id;
    } else if (request.kind == RequestKind::kEvaluate) {
      evaluations += 1;
      stopped_for_evaluations += works_at_[client] != 0;
    }
    return inner_.send(client, request);
  }
  const Event<double>& next(double deadline) override {
    const Event<double>& event = inner_.next(deadline);
    if (event.up.request_id == works_at_[event.up.client]) works_at_[event.up.client] = 0;
    return event;
  }
  double now() const override { return inner_.now(); }

  int evaluations = 0, stopped_for_evaluations = 0;

 private:
  Transport<double>& inner_;
  std::map<std::uint64_t, Vec<double>> sent_;
  std::map<ClientId, std::uint64_t> works_at_;  // request id; 0 once it has answered
};

// Returns f(x) for equal weights.
double loss_at(const Federation<double>& federation, View<double> x) {
  double loss = 0;
  Vec<double> gradient(x.size());
  for (const auto& oracle : federation.oracles) loss += oracle->loss_and_gradient(x, {}, gradient);
  return loss / static_cast<double>(federation.oracles.size());
}

// Runs 300 steps with an evaluation by the clients every ten steps. Returns how often an evaluation stopped a
// client at work.
int stopped_for_evaluations(const EventSimulationOptions& options, std::vector<RoundRecord>& rows) {
  const Federation<double> federation(4, 5);
  const auto run_context =
      federation.run_context(spec_of("ringmaster", "identity", {{"delay_threshold", "50"}}, "0.05"));
  EventSimulation<double> clients(run_context, federation.oracle_pointers(), options);
  Watched watched(clients);
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 300;
  limits.deadline_seconds = options.faults.any() ? 3 : 1e9;
  limits.attempts = 100;
  limits.evaluate_every = 10;
  std::vector<double> losses{loss_at(federation, server->model())};  // f(x^k)
  LoopHooks<double> hooks;
  hooks.on_commit = [&](const RoundCommit<double>&) {
    losses.push_back(loss_at(federation, server->model()));
  };
  hooks.on_record = [&](const RoundRecord& row) {
    EXPECT_NEAR(row.loss, losses[row.round], 1e-12) << "row " << row.round << " is of another point";
    rows.push_back(row);
  };
  run_rounds<double>(*server, traits_of(*run_context), *run_context, watched, progress, limits, hooks);
  EXPECT_EQ(progress.round, 300u);
  EXPECT_GE(watched.evaluations, static_cast<int>(4 * rows.size()));
  return watched.stopped_for_evaluations;
}

TEST(Asynchronous, ClientsEvaluateOnceTheirGradientIsDone) {
  std::vector<RoundRecord> rows;
  // The last row stops the clients at work, because the run is over.
  EXPECT_LE(stopped_for_evaluations(with(drawn), rows), 4);
  ASSERT_GT(rows.size(), 10u);
  for (std::size_t k = 1; k < rows.size(); ++k) EXPECT_GT(rows[k].round, rows[k - 1].round);
  EXPECT_EQ(rows.back().round, 300u);
  EXPECT_LT(rows.back().loss, rows.front().loss);
}

TEST(Asynchronous, CommitsNoReplyThatTheAlgorithmDidNotUse) {
  const Federation<double> federation(6, 5);
  const auto run_context = federation.run_context(
      spec_of("ringmaster", "identity", {{"delay_threshold", "2"}, {"outdated", "ignore"}}, "0.05"));
  EventSimulation<double> clients(run_context, federation.oracle_pointers(), with(drawn));
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 200;
  LoopHooks<double> hooks;
  int used = 0, unused = 0;
  hooks.on_commit = [&](const RoundCommit<double>& commit) {
    const UplinkView<double>& up = commit.replies[0];
    EXPECT_EQ(commit.progress.committed[up.client] == up.request_id, commit.used)
        << "step " << commit.progress.round;
    ++(commit.used ? used : unused);
  };
  run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
  EXPECT_GT(used, 10);
  EXPECT_GT(unused, 10);
}

TEST(Asynchronous, NeverSendsAnOldRequestIdWithANewBody) {
  EventSimulationOptions options = with(drawn);
  options.faults = {.lost_replies = 0.3, .lost_requests = 0.3, .duplicates = 0.3};
  std::vector<RoundRecord> rows;
  stopped_for_evaluations(options, rows);  // fails if a request id comes with a different body
}

TEST(Asynchronous, DrawsAgainForASecondRequestAtTheSamePoint) {
  EXPECT_EQ(draw_number(false, 5, 77), 5u);
  EXPECT_NE(draw_number(true, 5, 77), draw_number(true, 5, 78));
  const std::uint64_t restarted = (std::uint64_t{1} << 32) + 77;
  EXPECT_NE(draw_number(true, 5, 77), draw_number(true, 5, restarted))
      << "also after a restart of the server";
}

TEST(Asynchronous, EndsAsDivergedWhenTooFewClientsHaveFiniteGradients) {
  Federation<double> federation(4, 5);
  federation.oracles[2]->b[0] = std::numeric_limits<double>::quiet_NaN();
  const auto run_context =
      federation.run_context(spec_of("ringmaster", "identity", {{"delay_threshold", "5"}}, "0.05"));
  EXPECT_EQ(run_virtual(federation, run_context, 50, with(linear), Evaluate::kNever).outcome,
            Outcome::kDiverged);
  RoundLimits limits;
  limits.quorum = 0.75;
  const AsyncTrace trace = run_virtual(federation, run_context, 50, with(linear), Evaluate::kNever, limits);
  EXPECT_EQ(trace.outcome, Outcome::kFinished);
  EXPECT_EQ(std::count(trace.used.begin(), trace.used.end(), 2u), 0);
}

TEST(Asynchronous, GivesNewWorkOnceXChangesAfterANonFiniteGradient) {
  Federation<double> federation(4, 5);
  double& b = federation.oracles[2]->b[0];
  const double good = std::exchange(b, std::numeric_limits<double>::quiet_NaN());
  const auto run_context =
      federation.run_context(spec_of("ringmaster", "identity", {{"delay_threshold", "20"}}, "0.05"));
  EventSimulation<double> clients(run_context, federation.oracle_pointers(), with(linear));
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  RoundLimits limits;
  limits.rounds = 60;
  limits.quorum = 0.75;
  limits.evaluate_every = 0;
  std::vector<ClientId> used;
  LoopHooks<double> hooks;
  hooks.on_commit = [&](const RoundCommit<double>& commit) {
    used.push_back(commit.replies[0].client);
    if (commit.progress.round == 8) b = good;
  };
  EXPECT_EQ(
      run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks),
      Outcome::kFinished);
  EXPECT_GT(std::count(used.begin(), used.end(), 2u), 5);
}

TEST(Asynchronous, EndsAsDivergedWhenTooFewClientsCanEvaluate) {
  Federation<double> federation(4, 5);
  const auto run_context =
      federation.run_context(spec_of("fedbuff", "identity", {{"local_step_size", "0.1"}}, "1"));
  for (ClientId c = 0; c < 2; ++c) federation.oracles[c]->b[0] = std::numeric_limits<double>::quiet_NaN();
  RoundLimits limits;
  limits.quorum = 0.75;
  for (const Evaluate evaluate : {Evaluate::kByHook, Evaluate::kByClients})
    EXPECT_EQ(run_virtual(federation, run_context, 50, with(linear), evaluate, limits).outcome,
              Outcome::kDiverged);
}

TEST(Asynchronous, NamesTheMissingClientsWhenItGivesUp) {
  const Federation<double> federation(2, 5);
  const auto run_context =
      federation.run_context(spec_of("ringmaster", "identity", {{"delay_threshold", "5"}}, "0.05"));
  RoundLimits limits;
  limits.deadline_seconds = 2;
  limits.attempts = 3;
  const auto never = [](ClientId, std::uint64_t) { return std::numeric_limits<double>::infinity(); };
  try {
    run_virtual(federation, run_context, 5, with(never), Evaluate::kNever, limits);
    FAIL() << "no client answers";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(),
                 "step 0: no reply; waiting for clients 0, 1 after 3 deadlines of 2.000000 s; start the "
                 "missing clients");
  }
}

// The limits are those of a simulation on a virtual clock: clients are never asked again.
TEST(Asynchronous, EndsAtOnceIfNoClientWillEverAnswer) {
  const Federation<double> federation(2, 5);
  RoundLimits limits;
  limits.deadline_seconds = std::numeric_limits<double>::infinity();
  limits.attempts = 100'000;
  const auto fails = [](ClientId, std::uint64_t request_id) {
    return request_id < 8 ? 1.0 : std::numeric_limits<double>::infinity();
  };
  for (const AlgorithmSpec& spec : asynchronous_specs()) {
    if (spec.name == "mindflayer") continue;  // it cuts endless work
    SCOPED_TRACE(spec.name);
    try {
      run_virtual(federation, federation.run_context(spec), 50, with(fails), Evaluate::kNever, limits);
      FAIL() << "no client answers";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what())
                    .find("no reply; waiting for clients 0, 1 that never answer on this clock"),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace gradwire
