// Runs of a figure: their folders, configurations and metrics.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "report/metrics_table.h"

namespace gradwire {

// Keys of config.toml with their values as TOML, as in "algorithm.step_size" and "0.25". If summary.json has
// the value that the user asked for ("theory*2"), it replaces the resolved number.
using RunKeys = std::vector<std::pair<std::string, std::string>>;
// Returns the value of the key without quotes, or an empty string if the run lacks the key.
std::string value_of_key(const RunKeys& keys, std::string_view key);

struct PlotRun {
  std::filesystem::path folder;
  RunKeys keys;
  MetricsTable metrics;
  std::optional<double> f_star;  // set if the request needs it

  std::filesystem::path file() const { return folder / "metrics.csv"; }
};

// Returns the folders of results in `paths`, in alphabetical order; runs of a sweep come in the order of its
// file. Searches the folders below a path that is not a folder of results itself, except hidden ones. With
// `tuned`, a folder with the best.csv of a sweep has only the runs in it, and `tuned` gets the tuned keys.
// Throws UsageError if it finds none.
std::vector<std::filesystem::path> find_runs(std::span<const std::filesystem::path> paths,
                                             std::vector<std::string>* tuned = nullptr);

// Reads the columns `wanted`. Throws UsageError if a folder has no results, and std::runtime_error if they
// are damaged.
std::vector<PlotRun> read_runs(std::span<const std::filesystem::path> folders,
                               std::span<const std::string> wanted);

}  // namespace gradwire
