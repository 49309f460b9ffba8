// gradwire new: writes an experiment file for the user's data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"

namespace gradwire {

struct NewExperiment {
  std::filesystem::path file;
  std::vector<LogLine> notes;  // the choices, each with the option that changes it
};

// Looks at the data, and writes NAME.toml with a problem type, a number of clients and an algorithm that fit
// them, and comments. `data` is a source as in problem.data, or the path of a file or folder. `sets` are keys
// as for --set, which go into the file. Throws UsageError if the file exists, and DataError or
// ExperimentError if the data cannot be used.
NewExperiment write_new_experiment(const std::string& name, const std::string& data,
                                   const std::vector<std::string>& sets);

}  // namespace gradwire
