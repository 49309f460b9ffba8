// Runs of a small federation on the virtual clock.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/rng_stream.h"
#include "simulation/event_simulation.h"
#include "tests/algorithms/every_algorithm.h"

namespace gradwire {

struct AsyncTrace {
  std::vector<RoundRecord> rows;
  std::vector<ClientId> used;  // client of each step's reply
  Vec<double> model;
  double seconds = 0;
  std::uint64_t computed = 0, request_ids = 0;
  Outcome outcome = Outcome::kFinished;
  RunTotals totals;
};

inline double linear(ClientId i, std::uint64_t) { return i + 1.0; }
// Returns a time between 0.5 and 1.5, drawn for each request.
inline double drawn(ClientId i, std::uint64_t request_id) {
  return 0.5 + RngStream({1, i, static_cast<std::uint32_t>(request_id), RngDomain::kFault}).uniform();
}

// Returns options with this many threads, which compute ahead even if that costs more.
inline EventSimulationOptions on_threads(unsigned threads, EventSimulationOptions options) {
  options.threads = threads;
  options.worth_threads_seconds = 0;
  return options;
}

inline EventSimulationOptions with(std::function<double(ClientId, std::uint64_t)> seconds) {
  EventSimulationOptions options;
  options.seconds = std::move(seconds);
  return options;
}

enum class Evaluate { kByHook, kByClients, kNever };

inline AsyncTrace run_virtual(const testing::Federation<double>& federation,
                              std::shared_ptr<const RunContext<double>> run_context, std::uint32_t rounds,
                              const EventSimulationOptions& options, Evaluate evaluate = Evaluate::kByHook,
                              RoundLimits limits = {}) {
  EventSimulation<double> clients(run_context, federation.oracle_pointers(), options);
  const auto server = make_server<double>(run_context);
  RunProgress progress;
  limits.rounds = rounds;
  limits.evaluate_every = evaluate == Evaluate::kNever ? 0 : 5;
  AsyncTrace trace;
  LoopHooks<double> hooks;
  hooks.seconds = [&] { return clients.now(); };
  if (evaluate == Evaluate::kByHook)
    hooks.evaluate = [&](View<double> x, Evaluation<double>& to) { clients.evaluate(x, to); };
  hooks.on_record = [&](const RoundRecord& row) { trace.rows.push_back(row); };
  hooks.on_commit = [&](const RoundCommit<double>& commit) {
    for (const auto& up : commit.replies) trace.used.push_back(up.client);
    trace.totals = commit.progress.totals;
  };
  trace.outcome =
      run_rounds<double>(*server, traits_of(*run_context), *run_context, clients, progress, limits, hooks);
  trace.model.assign(server->model().begin(), server->model().end());
  trace.seconds = trace.totals.seconds;
  trace.computed = clients.computed();
  trace.request_ids = progress.request_id;
  return trace;
}

inline std::vector<AlgorithmSpec> asynchronous_specs() {
  std::vector<AlgorithmSpec> specs;
  for (const AlgorithmInfo& algorithm : all_algorithms()) {
    if (!algorithm.traits.asynchronous) continue;
    AlgorithmSpec spec = testing::spec_for(algorithm);
    for (const ParameterHelp& p : algorithm.parameters) {
      if (p.name == "buffer") spec.parameters.emplace_back(p.name, "3");
      if (p.name == "gradients") spec.parameters.emplace_back(p.name, "3");
      if (p.name == "trials") spec.parameters.emplace_back(p.name, "2");
      if (p.name == "allotted_seconds") spec.parameters.emplace_back(p.name, "1.2");
      if (p.name == "delay_threshold") spec.parameters.emplace_back(p.name, "4");
      if (p.name == "local_step_size") spec.parameters.emplace_back(p.name, "0.1");
    }
    specs.push_back(spec);
  }
  return specs;
}

}  // namespace gradwire
