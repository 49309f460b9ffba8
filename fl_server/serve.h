// The gradwire-server program as a function: from an experiment file to a folder of results.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "config/experiment_file.h"
#include "fl_server/net/connection.h"
#include "rounds/round_loop.h"

namespace gradwire {

struct ServeOptions {
  std::filesystem::path file;
  std::vector<std::string> overrides;  // of --set
  std::string listen;                  // HOST:PORT
  std::filesystem::path state;
  std::filesystem::path
      identity;         // who the server and its clients are (access/server_identity.h); empty: in plain text
  std::string metrics;  // HOST:PORT of http://HOST:PORT/metrics; empty: none
  std::filesystem::path run_history;  // empty: registry.sqlite3 in `state`; "none": no run history
  std::optional<std::chrono::milliseconds> join_deadline;  // in place of server.join_deadline_ms
  WireTimes times;
  bool handle_signals = true;
  bool resume = true;  // go on with the run that the folder holds; else begin anew in its place
  Log log;
  std::function<void(const RoundRecord&)> on_record;
};

struct Served {
  std::optional<Outcome> outcome;       // nothing: stopped before all clients had joined
  bool was_over = false;                // the folder held a run that had no rounds left
  std::uint64_t beyond_norm_limit = 0;  // replies that were rejected because of server.norm_limit
};

// Goes on with the run that the folder holds, or waits for the clients and begins one; runs all rounds, says
// shutdown. Writes DIR/address at once, config.toml when the clients are there, metrics.csv as it goes,
// model.bin and summary.json at the end, and what a later process needs to go on (docs/reliability.md).
// Outcome::kStopped: rounds are left, and the clients wait for the server to come back. Throws
// ExperimentError, DataError, std::invalid_argument (--listen), or std::runtime_error; always one line.
Served serve(const ServeOptions& options);

}  // namespace gradwire
