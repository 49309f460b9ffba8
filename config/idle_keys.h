#pragma once

#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "config/experiment_file.h"

namespace gradwire {

// Returns a line for each key of the file or of --set that has no effect because of another key
// (Constraints::idle_by): `placement has no effect with replication = 1`. A key that is not `quiet` is in
// every written file, so it counts only if its value is not the default.
std::vector<std::string> idle_keys(const LoadedExperiment& loaded);
// Returns a warning if the experiment has test samples but no metric for them, else "".
std::string unused_test(const ExperimentSpec& experiment);

// Returns the parameters of the algorithm that have no effect and differ from their default.
std::vector<IdleParameter> idle_parameters(const ExperimentSpec& e);

// Returns the paths of the keys that have an effect only at `place` and differ from their default.
std::vector<std::string> keys_of(RunIn place, const LoadedExperiment& loaded);

}  // namespace gradwire
