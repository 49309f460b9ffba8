// The folder of results that a run gets if the user names none.
#pragma once

#include <filesystem>

#include "config/experiment_file.h"

namespace gradwire {

// Returns results/NAME. The settings of --set are part of the folder's name, as in
// results/quadratics-compressor=sign, unless one of them is the name.
std::filesystem::path default_folder(const LoadedExperiment& loaded);

}  // namespace gradwire
