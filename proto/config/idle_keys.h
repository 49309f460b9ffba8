#pragma once

#include <string>
#include <vector>

#include "proto/config/experiment_file.h"

namespace gradwire {

// Returns a line for each key of the file or of --set that has no effect with the value of another one
// (Rules::idle_by): `placement has no effect with copies = 1`. A key that every written file has counts only
// if its value is not the default.
std::vector<std::string> idle_keys(const LoadedExperiment& loaded);

// Returns a line for each key that only simulations read and whose value is not the default, for servers.
std::vector<std::string> keys_of_simulations(const LoadedExperiment& loaded);

}  // namespace gradwire
