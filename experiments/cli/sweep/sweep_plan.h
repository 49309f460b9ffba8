// The [sweep] of an experiment file: its runs, and the rules for the best ones (docs/reference/sweeps.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/experiment_file.h"
#include "config/settings.h"
#include "config/toml_reader.h"

namespace gradwire {

inline constexpr std::size_t kMostRuns = 100'000;

// The rules by which runs are judged. Columns are those of metrics.csv.
struct Judgement {
  std::string criterion = "grad_norm_sq";  // the column to minimize; accuracy is maximized
  std::string budget_column;               // empty if the budget is the whole run
  double budget = 0;                       // rows beyond it do not count
  std::optional<double> target;   // if set, a run is judged by its budget_column when it reaches the target
  std::vector<std::string> show;  // further columns of the table, from the row by which a run is judged
};

// The contents of a sweep's figure. By default gradwire plot chooses them.
struct SweepFigure {
  std::vector<std::string> panels;  // each "Y:X"
  std::string by;                   // key whose values have separate panels; may be empty
};

struct RunOfSweep {
  std::vector<TomlEntry> chosen;  // values of the swept keys, with their lines
  Settings settings;              // all settings, as the user gave them
  std::string id;                 // folder of its results; a function of the settings
};

struct SweepPlan {
  std::string name;
  std::filesystem::path file;
  std::string text;                    // content of the file
  std::vector<std::string> overrides;  // arguments of --set
  std::vector<RunOfSweep> runs;        // all different, in the order of the file; the last key varies fastest
  std::vector<std::string> varied;     // keys that differ between runs
  std::vector<std::string> tuned;      // keys whose best value the sweep searches
  Judgement judgement;
  SweepFigure figure;
  std::vector<std::string> warnings;  // a line for each old name in the file and in --set

  // Returns the keys that distinguish algorithms: varied, but neither tuned nor `seed`.
  std::vector<std::string> compared() const;
};

// Read the sweep, and check every run. plan_sweep() gets the content of the file. Throw
// ExperimentError.
SweepPlan read_sweep(const std::filesystem::path& file, std::span<const std::string> overrides);
SweepPlan plan_sweep(std::string content, const std::filesystem::path& file,
                     std::span<const std::string> overrides);

// Returns the run as a separate experiment.
LoadedExperiment load_run(const SweepPlan& plan, const RunOfSweep& run);

// Returns the value of `key` in the run, or "" if the run does not have the key.
std::string setting(const RunOfSweep& run, std::string_view key);

// Returns "algorithm.step_size = theory*4, seed = 2".
std::string label_of(const RunOfSweep& run, std::span<const std::string> keys);

}  // namespace gradwire
