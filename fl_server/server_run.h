// One run of a server, from its plan to results, that an earlier process may have begun.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "config/run_plan.h"
#include "fl_server/hub/session_manager.h"
#include "fl_server/net/server_metrics.h"
#include "fl_server/registry/run_history.h"
#include "fl_server/serve.h"
#include "storage/run_store.h"

namespace gradwire {

Durability durability_of(const Experiment& experiment);
// What the command line says, else the experiment.
std::chrono::milliseconds join_deadline(const ServeOptions& options, const Experiment& experiment);

class ServerRun {
 public:
  virtual ~ServerRun() = default;
  // What Journal::recover hands out, before go().
  virtual bool load(std::span<const Section> sections) = 0;
  virtual bool replay(std::string_view record) = 0;
  virtual std::uint32_t round() const = 0;  // rounds done
  virtual RunEnd stage() const = 0;         // of what was recovered
  // Sets what snapshots ask for what save_metadata() gives, in place of the text that the run was made with.
  virtual void ask_metadata(std::function<std::string()> metadata) = 0;
  // Runs the rounds that are left and writes the results. `start`: the Start frame.
  virtual Outcome go(SessionManager& session_manager, const std::string& start) = 0;
  // Tells clients that the run is over, also those that come back for it, and waits a while until they have
  // heard it.
  virtual void shut_down_clients(SessionManager& session_manager, const std::string& start,
                                 Outcome outcome) = 0;
};

// `disk`: the folder of the run, where its journal is. `metadata`: of save_metadata(). `run_history` may be
// null. What happens is counted in `server_metrics`. All but `metadata` must outlive the run. Throws
// ConfigError or std::runtime_error.
std::unique_ptr<ServerRun> make_server_run(const ServeOptions& options, const RunPlan& plan, Disk& disk,
                                           Journal& journal, Background& background, RunHistory* run_history,
                                           ServerMetrics& server_metrics, std::string metadata);

}  // namespace gradwire
