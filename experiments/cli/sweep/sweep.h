// gradwire sweep: all runs of a [sweep], then one table and one figure (docs/sweeps.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "experiments/cli/sweep/sweep_plan.h"

namespace gradwire {

// Every count-th run, beginning with the index-th: the part of one of several machines.
struct Shard {
  std::uint32_t index = 0, count = 1;
};
// "2/4": the second of four. Throws UsageError.
Shard parse_shard(const std::string& text);

struct SweepRequest {
  std::filesystem::path out;  // empty: results/NAME
  unsigned jobs = 0;          // runs at a time; 0: one per processor
  Shard shard;
  bool quiet = false;
  bool tikz = false;  // the figure for LaTeX, too
  Log log;
};

struct SweepReport {
  std::filesystem::path folder;
  std::size_t done = 0;             // in this call
  std::size_t found = 0;            // finished by an earlier one
  std::size_t missing = 0;          // without results: of other shards, failed or stopped
  std::vector<std::string> failed;  // one line for each run that failed
  bool stopped = false;
  std::string table;  // of what there is; empty where no run has ended
};

// Runs what has no results yet; those that fail do not keep the others from running, and leave a file
// ID.failed with the reason. Then writes runs.csv, best.csv, and plot.svg with the best runs of each
// algorithm. A run takes one thread; what runs share is their data. Throws UsageError, ExperimentError,
// std::runtime_error.
SweepReport run_sweep(const SweepPlan& plan, const SweepRequest& request, const std::atomic<bool>& stop);

// Copies the finished runs of other folders of this sweep, then writes the same files.
SweepReport merge_sweep(const SweepPlan& plan, const SweepRequest& request,
                        const std::vector<std::filesystem::path>& folders);

}  // namespace gradwire
