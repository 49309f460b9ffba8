// One run of a server, from its plan to its results. It may resume the run of an earlier process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "config/run_plan.h"
#include "fl_server/net/server_metrics.h"
#include "fl_server/run_history/run_history.h"
#include "fl_server/serve.h"
#include "fl_server/sessions/session_manager.h"
#include "storage/run_store.h"

namespace gradwire {

Durability durability_of(const ExperimentSpec& experiment);
// Returns the deadline of the command line, or else of the experiment.
std::chrono::milliseconds join_deadline(const ServeOptions& options, const ExperimentSpec& experiment);

class ServerRun {
 public:
  virtual ~ServerRun() = default;
  // Handle a snapshot and a record of Journal::recover, before go().
  virtual bool load(std::span<const Section> sections) = 0;
  virtual bool replay(std::string_view record) = 0;
  virtual const RunProgress& progress() const = 0;
  virtual RunEnd stage() const = 0;  // the stage of the recovered run
  // Makes snapshots call `metadata`, which returns a text of save_metadata(), in place of the initial text.
  virtual void ask_metadata(std::function<std::string()> metadata) = 0;
  // Records a client that joins for the first time, after the start. Returns an error if it must try again.
  virtual Status record_join(ClientId client, const ClientInfo& info, bool by_part) = 0;
  // Runs the remaining rounds and writes the results. `start` is the Start frame.
  virtual Outcome go(SessionManager& session_manager, const std::string& start) = 0;
  // Tells clients that the run is over, including clients that reconnect. Waits a limited time for their
  // confirmation.
  virtual void shut_down_clients(SessionManager& session_manager, const std::string& start,
                                 Outcome outcome) = 0;
};

// Makes a run. `disk` is the folder of the run with its journal. `metadata` is a text of save_metadata().
// `run_history` may be null. All except `metadata` must outlive the run. Throws ConfigError or
// std::runtime_error.
std::unique_ptr<ServerRun> make_server_run(const ServeOptions& options, const RunPlan& plan, Disk& disk,
                                           Journal& journal, Background& background, RunHistory* run_history,
                                           ServerMetrics& server_metrics, std::string metadata);

}  // namespace gradwire
