// The plan of a server's run, made from the experiment and from the clients' descriptions of their data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "config/experiment_file.h"
#include "config/run_plan.h"
#include "config/start_frame.h"
#include "fl_server/sessions/client_table.h"

namespace gradwire {

// Returns the constants that each client must report because parameters of the run depend on them. Throws
// ExperimentError, before any client joins, if theory needs a constant that no client can know.
NeededConstants constants_to_ask(const LoadedExperiment& loaded);

// Returns another client that has described its data, or null.
using OtherClient = std::function<const ClientInfo*(ClientId)>;

// Returns an error if no run is possible with this client's data, alone or with the data of those that came
// before. The server refuses such a client before it can end the run for all. `other` may be empty.
Status check_client(const ClientInfo& info, const ExperimentSpec& experiment, const OtherClient& other = {});

// Returns an error if a client with these abilities cannot take part. `begun` says whether the run has begun.
Status check_abilities(const Abilities& abilities, const ExperimentSpec& experiment, bool begun);

// Returns true if the kernels of clients change the bits of the run.
bool bits_depend_on_kernels(const ExperimentSpec& experiment);

// Returns what the clients that joined must have between them before a run can begin, and have not, or "".
std::string lacking_of_joins(const ExperimentSpec& experiment, const ClientTable& table);

// Makes the plan. REQUIRES: as many clients of the table have joined as server.start_share demands. Throws
// ExperimentError or DataError (one line).
RunPlan plan_of_joins(const LoadedExperiment& loaded, const ClientTable& table);

// Makes the plan again in a later process. `resolved` is the experiment of the earlier plan. x0 is zero,
// because the algorithm's state replaces it. Throws ConfigError or DataError if the arguments do not fit
// together.
RunPlan plan_of_snapshot(const ExperimentSpec& asked, const ExperimentSpec& resolved,
                         const ClientTable& table);

}  // namespace gradwire
