// Makes the plan of a run from an experiment and from facts about the clients' data. A simulation computes
// these facts; a server receives them from its clients.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "config/experiment_file.h"
#include "config/run_plan.h"

namespace gradwire {

struct ClientsData {
  DataSchema schema;
  // Training samples of each client, shape (n). Empty or zeros for functions without data.
  std::vector<std::uint64_t> samples;
  // Returns the constants of the clients' functions, or nullopt if they are not known. When it is called, the
  // plan already lists the constants that theory needs. May add warnings to the plan.
  std::function<std::optional<Smoothness>(RunPlan&)> smoothness;
  bool lacks_clients = false;   // some have not joined yet; they have 0 samples
  std::vector<double> x0 = {};  // a start point of the program, shape (d); empty for run.x0
};

// Makes the plan, and replaces step sizes such as "theory" by numbers. Throws ExperimentError or DataError
// (one line).
RunPlan make_plan(const LoadedExperiment& loaded, const ClientsData& data);

// Makes the plan again in a later process. `resolved` is the experiment of the plan that make_plan() returned
// for `asked`. x0 is zeros, because the algorithm's state replaces it. Throws ConfigError or DataError if the
// arguments do not fit together.
RunPlan make_plan_again(ExperimentSpec asked, ExperimentSpec resolved, const ClientsData& data);

}  // namespace gradwire
