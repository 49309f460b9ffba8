// The gradwire-server program as a function: from an experiment to a folder of results.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "base/log.h"
#include "config/experiment_file.h"
#include "config/run_plan.h"
#include "fl_server/net/connection.h"
#include "rounds/round_loop.h"

namespace gradwire {

struct ServeOptions {
  std::string listen;  // HOST:PORT
  std::filesystem::path state;
  // The identities of server and clients (access/server_identity.h). If empty, connections are in plain text.
  std::filesystem::path identity;
  std::string metrics;                // HOST:PORT of http://HOST:PORT/metrics; if empty, no endpoint
  std::filesystem::path run_history;  // if empty, registry.sqlite3 in `state`; "none" disables it
  std::optional<std::chrono::milliseconds> join_deadline;  // replaces server.join_deadline_ms
  WireTimes times;
  bool handle_signals = true;  // SIGINT and SIGTERM stop the run
  std::stop_token stop;        // stops the run, like the signals
  std::stop_token abandon;     // requested after `stop`: gives up the round in progress
  bool resume = true;          // resumes the run in the folder; else moves it aside for a new run
  Log log;
  std::function<void(const std::string& address)> on_listening;  // HOST:PORT as bound; may be empty
  std::function<void(const RoundRecord&)> on_record;             // may be empty
  std::function<bool(const RoundRecord&)> is_enough;             // the hook LoopHooks::is_enough
};

struct Served {
  std::optional<Outcome> outcome;       // empty if stopped before all clients had joined
  bool was_over = false;                // the run in the folder had no rounds left
  std::uint64_t beyond_norm_limit = 0;  // replies rejected because of server.norm_limit
  RunPlan plan;                         // without a start point; empty if the run did not begin
  std::uint32_t rounds = 0;             // finished rounds
  double seconds = 0;                   // time of these rounds
};

// Returns one line that says what to do if the run diverged, else "".
std::string trouble_of(const Served& served);

// Resumes the run in the folder, or waits for the clients and begins one. Runs all rounds and shuts the
// clients down. Writes DIR/address at once, config.toml after all clients joined, metrics.csv during the run,
// and model.bin and summary.json at the end. Also writes the recovery files
// (docs/explanation/reliability.md). With Outcome::kStopped, rounds are left and the clients wait for the
// server to return. Throws ExperimentError, DataError, std::invalid_argument (--listen) or std::runtime_error
// (one line).
Served serve(const ServeOptions& options, const LoadedExperiment& loaded);

}  // namespace gradwire
