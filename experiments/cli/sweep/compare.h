// gradwire compare: a sweep over algorithms, made from an experiment without a [sweep].
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/cli/sweep/sweep.h"

namespace gradwire {

struct CompareRequest {
  std::filesystem::path file;
  std::vector<std::string> sets;
  // Names with commas between them, each alone or with a compressor: "gd, ef21:topk:k=3".
  std::vector<std::string> algorithms;
  std::uint32_t seeds = 5;
  bool tune = false;       // searches the best step size of each algorithm
  std::string budget;      // "COLUMN = NUMBER", as in sweep.budget; may be empty
  bool overwrite = false;  // replaces a comparison of other settings
  SweepRequest sweep;      // its `out` is by default results/NAME-compare
};

// Runs the algorithms on the problem of the experiment, each with the named compressor, or with one that it
// takes. The algorithm of the experiment gives its compressor, and its parameters if it is compared. A tuned
// step size is a power of two of theory's; the list of powers grows until its best is not at an end. `log` of
// the request gets a line for each choice. Throws UsageError, ExperimentError, DataError, std::runtime_error.
SweepReport compare(const CompareRequest& request, const std::atomic<bool>& stop);

}  // namespace gradwire
