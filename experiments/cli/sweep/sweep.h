// gradwire sweep: runs all combinations in a [sweep], then makes a table and a figure
// (docs/reference/sweeps.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "experiments/cli/sweep/judge.h"
#include "experiments/cli/sweep/sweep_plan.h"
#include "simulation/prepare.h"

namespace gradwire {

// The runs of one of several machines: run `index`, counted from 0, and every count-th run after it.
struct Shard {
  std::uint32_t index = 0, count = 1;
};
// Reads "2/4", the second of four shards. Throws UsageError.
Shard parse_shard(const std::string& text);

struct SweepRequest {
  std::filesystem::path out;  // empty for results/NAME
  unsigned jobs = 0;          // runs at a time; 0 for one per processor
  Shard shard;
  bool fresh = false;  // moves an earlier sweep in the folder aside
  bool quiet = false;
  bool tikz = false;                // also writes the figure for LaTeX
  std::filesystem::path figure;     // one more file with the figure, as for gradwire plot --out; may be empty
  std::string width;                // width of that figure; may be empty
  std::vector<std::string> panels;  // "Y:X" each; if empty, those of the plan
  unsigned threads = 1;             // threads of each run
  Brought brought;                  // parts of the program that runs the sweep; all runs share them
  std::function<void(LoadedExperiment&)> complete;  // adds the program's algorithm to a run; may be null
  bool is_of_program = false;  // true if a program made the text of the plan, whose lines mean nothing to it
  std::string program;  // tells what the program brings from what others bring; empty if it brings nothing
  Log log;
  // Called after each run of this call, with the number of those that ended and of all, by one thread at a
  // time.
  std::function<void(std::size_t ended, std::size_t runs)> on_run;
};

struct SweepReport {
  std::filesystem::path folder;
  std::size_t done = 0;             // runs of this call
  std::size_t found = 0;            // runs that an earlier call finished
  std::size_t missing = 0;          // runs without results: of other shards, failed or stopped
  std::vector<std::string> failed;  // one line for each run that failed
  bool stopped = false;
  std::vector<BestOf> best;  // the best runs of each algorithm; empty if no run has ended
  std::string table;         // the same for people
};

// Does the runs that have no results yet. A run that fails leaves a file ID.failed with the reason, and the
// others continue. Then writes runs.csv, best.csv, and plot.svg with the best runs of each algorithm. A run
// uses request.threads; runs share only their data. Throws UsageError, ExperimentError, std::runtime_error.
SweepReport run_sweep(const SweepPlan& plan, const SweepRequest& request, const std::atomic<bool>& stop);

// Returns the folder with the results of a run, in the folder of its sweep.
std::filesystem::path folder_of_run(const std::filesystem::path& sweep, const RunOfSweep& run);

// Copies the finished runs of other folders of this sweep, then writes the same files.
SweepReport merge_sweep(const SweepPlan& plan, const SweepRequest& request,
                        const std::vector<std::filesystem::path>& folders);

}  // namespace gradwire
