// The runs that a figure is made from: their folders, what their configurations say, and their metrics.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "report/metrics_table.h"

namespace gradwire {

// A key of config.toml with its value as TOML, "algorithm.step_size" and "0.25". What the experiment asked
// for, as far as summary.json tells ("theory*2"), stands in place of the number that became of it.
using RunKeys = std::vector<std::pair<std::string, std::string>>;
// The value of a key, without quotes; empty: there is no such key.
std::string value_of_key(const RunKeys& keys, std::string_view key);

struct PlotRun {
  std::filesystem::path folder;
  RunKeys keys;
  MetricsTable metrics;
  std::optional<double> f_star;  // where it was asked for

  std::filesystem::path file() const { return folder / "metrics.csv"; }
};

// The folders of results among `paths` and, where a path is none itself, in the folders below it (hidden ones
// left out), in alphabetical order, runs of a sweep in the order of its file. Throws UsageError where there
// are none.
std::vector<std::filesystem::path> find_runs(std::span<const std::filesystem::path> paths);

// Reads the columns `wanted`. Throws UsageError when a folder holds no results, std::runtime_error when they
// are damaged.
std::vector<PlotRun> read_runs(std::span<const std::filesystem::path> folders,
                               std::span<const std::string> wanted);

}  // namespace gradwire
