// The [sweep] of an experiment file: its runs, and how the best are chosen (docs/sweeps.md).
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

// How runs are judged. Columns are those of metrics.csv.
struct Judgement {
  std::string criterion = "grad_norm_sq";  // the column that shall be small; accuracy: large
  std::string budget_column;               // empty: to the end of the run
  double budget = 0;                       // rows beyond it do not count
  std::optional<double> target;   // then it is judged by how much of budget_column it needs to get there
  std::vector<std::string> show;  // further columns of the table, from the row by which a run is judged
};

// What the figure of a sweep shows, in place of what gradwire plot chooses.
struct SweepFigure {
  std::vector<std::string> panels;  // "Y:X" each
  std::string by;                   // the key whose values have panels of their own; empty: none
};

struct RunOfSweep {
  std::vector<TomlEntry> chosen;  // values of the swept keys, with their lines
  Settings settings;              // all, as the operator gave them
  std::string id;                 // folder of its results; a function of the settings
};

struct SweepPlan {
  std::string name;
  std::filesystem::path file;
  std::string text;                    // of the file
  std::vector<std::string> overrides;  // arguments of --set
  std::vector<RunOfSweep> runs;        // all different, in the order of the file, the last key fastest
  std::vector<std::string> varied;     // keys that differ between runs
  std::vector<std::string> tuned;      // those whose best value is looked for
  Judgement judgement;
  SweepFigure figure;

  // The keys that tell algorithms apart: varied, but neither tuned nor `seed`.
  std::vector<std::string> compared() const;
};

// Every run is read and checked. Throws ExperimentError.
SweepPlan read_sweep(const std::filesystem::path& file, std::span<const std::string> overrides);

// The run as an experiment of its own.
LoadedExperiment load_run(const SweepPlan& plan, const RunOfSweep& run);

// Empty: the run does not have the key.
std::string setting(const RunOfSweep& run, std::string_view key);

// "algorithm.step_size = theory*4, seed = 2"
std::string label_of(const RunOfSweep& run, std::span<const std::string> keys);

}  // namespace gradwire
