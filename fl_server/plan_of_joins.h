// The plan of a server's run, made from the experiment and from what the clients say about their data.
#pragma once

#include <cstdint>
#include <string>

#include "config/experiment_file.h"
#include "config/run_plan.h"
#include "fl_server/hub/client_table.h"

namespace gradwire {

// The constants that every client must tell about its function, because parameters of the run depend on them.
// Throws ExperimentError, before anyone joins, when theory needs a constant that no client can tell.
NeededConstants constants_to_ask(const LoadedExperiment& loaded);

// An error when no run is possible with what this client says about its data: the server refuses such a
// client before it can end the run for all.
Status check_client(const ClientInfo& info, const Experiment& experiment);

// REQUIRES: all clients of the table have joined. Throws ExperimentError or DataError (one line).
RunPlan plan_of_joins(const LoadedExperiment& loaded, const ClientTable& table);

// The same in a later process; `resolved` is the experiment of that plan, and x0 is zeros: the algorithm's
// state replaces it. Throws ConfigError or DataError when the arguments do not fit together.
RunPlan plan_of_snapshot(const Experiment& asked, const Experiment& resolved, const ClientTable& table);

// The Start frame, which tells the clients what was agreed.
std::string start_frame(const RunPlan& plan, std::uint64_t run);
// The run that a frame of start_frame() names.
std::uint64_t run_of(const std::string& start_frame);

}  // namespace gradwire
