// gradwire new: writes an experiment file for the user's data.
#pragma once

#include <filesystem>
#include <string>

namespace gradwire {

// Looks at the data, and writes NAME.toml with a problem type, a number of clients and an algorithm that fit
// them, and comments. `data` is a source as in problem.data, or the path of a file or folder. Returns the
// file. Throws UsageError if the file exists, and DataError or ExperimentError if the data cannot be used.
std::filesystem::path write_new_experiment(const std::string& name, const std::string& data);

}  // namespace gradwire
