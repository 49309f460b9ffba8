// From an experiment, and from what is known of the clients' data, to the plan of the run: the same way for a
// simulation, which has the data, and for a server, which hears of it.
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
  std::vector<std::uint64_t> samples;  // for training, shape (n); empty or zeros: functions without data
  // The constants of the clients' functions, of a plan that has all but these, what theory needs included.
  // Nothing: they are not known. May add warnings to the plan.
  std::function<std::optional<Smoothness>(RunPlan&)> smoothness;
};

// Resolves every number. Throws ExperimentError or DataError (one line).
RunPlan make_plan(const LoadedExperiment& loaded, const ClientsData& data);

// The same in a later process; `resolved` is what make_plan() made of `asked`. x0 is zeros: the algorithm's
// state replaces it. Throws ConfigError or DataError when the arguments do not fit together.
RunPlan make_plan_again(Experiment asked, Experiment resolved, const ClientsData& data);

}  // namespace gradwire
