// Results that an earlier run left in a folder, and how a new run keeps them.
#pragma once

#include <filesystem>
#include <string>

#include "config/experiment_spec.h"

namespace gradwire {

// Returns the outcome in the summary.json of a folder of results. Empty if the folder has no results, or
// those of a run that was stopped.
std::string outcome_in(const std::filesystem::path& results);

// Returns the first setting of `resolved` that differs from that of the run in `results`. Empty if none does.
// REQUIRES: identify_run(results).
std::string changed_setting(const std::filesystem::path& results, const ExperimentSpec& resolved);
// Throws UsageError if `results` has the finished results of a run with other settings than `resolved`.
void check_same_experiment(const std::filesystem::path& results, const ExperimentSpec& resolved);

// Returns whether two folders have the same model and the same metrics, apart from the wall-clock seconds.
bool same_results(const std::filesystem::path& one, const std::filesystem::path& other);

// Returns `wanted` if it does not exist, else the first of "WANTED-2", "WANTED-3", ... that does not.
std::filesystem::path unused_name(const std::filesystem::path& wanted);

// Renames a folder to "FOLDER.before", or to an unused name that begins so, and returns the new name.
std::filesystem::path set_aside(const std::filesystem::path& folder);

}  // namespace gradwire
