#pragma once

#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "config/experiment_file.h"

namespace gradwire {

// Returns a line for each key of the file or of --set that has no effect with the value of another one
// (Constraints::idle_by): `placement has no effect with copies = 1`. A key that every written file has counts
// only if its value is not the default.
std::vector<std::string> idle_keys(const LoadedExperiment& loaded);

// Returns the parameters of the algorithm that have no effect and not their default.
std::vector<IdleParameter> idle_parameters(const Experiment& e);

// Returns the paths of the keys that have an effect at `place` alone and not their default.
std::vector<std::string> keys_of(RunIn place, const LoadedExperiment& loaded);

}  // namespace gradwire
