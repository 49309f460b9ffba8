// Sweeps: runs of one experiment with all combinations of some values (docs/reference/sweeps.md).
//
//   auto sweep = gradwire::sweep(gradwire::Experiment::load("a.toml"),
//                                {{"algorithm.step_size", {"theory", "theory*4"}}, {"seed", {1, 2, 3}}});
//   std::puts(sweep.table.c_str());
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gradwire/train.h"
#include "gradwire/version.h"

namespace gradwire {

// Keys with the values that they take. The last key changes fastest.
using Grid = std::vector<std::pair<std::string, std::vector<KeyValue>>>;

struct SweepOptions {
  // Parts of the program, as in TrainOptions. All runs share them, and a grid may compare them with others:
  // {"algorithm.name", {"custom", "ef21"}}. A folder whose runs have other functions, samples,
  // start points or names of the algorithm is refused.
  ByValue<UserAlgorithm> algorithm = {};
  ByValue<UserCompressor> compressor = {};
  std::optional<Data> data = {}, test = {};
  std::vector<double> x0 = {}, smoothness = {};

  // The rule for the best runs of a Grid (docs/reference/sweeps.md). The [sweep] of a file has its own.
  std::string criterion = {};          // a column of metrics.csv; empty for grad_norm_sq
  std::string budget = {};             // as in "bits_up = 1e7": only rows up to it count
  std::optional<double> target = {};   // a value of the criterion; the best run reaches it at the lowest cost
  std::vector<std::string> tune = {};  // keys whose best values are found; empty for algorithm.step_size

  std::filesystem::path out = {};  // folder of the results; empty for results/NAME
  unsigned jobs = 0;   // runs at a time, or the threads of a run over oracles; 0 means one per processor
  bool fresh = false;  // moves an earlier sweep in the folder aside, and runs everything
  std::stop_token stop = {};  // ends the sweep; a later call does the runs that are missing
  std::function<void(std::string_view line)> log = {};
  // Called after each run of this call, with the number of those that ended and of all, by one thread at a
  // time.
  std::function<void(std::size_t ended, std::size_t runs)> on_run = {};
};

struct SweptRun {
  std::filesystem::path folder = {};                             // results, as of gradwire run
  std::vector<std::pair<std::string, std::string>> values = {};  // of the keys that vary
};

// The best values of one algorithm.
struct BestRuns {
  std::string algorithm = {};            // "algorithm.name = ef21"; empty if no algorithms are compared
  std::string tuned = {};                // "algorithm.step_size = theory*4"; empty if nothing was tuned
  double median = 0, low = 0, high = 0;  // of the criterion, over the seeds
  std::vector<std::size_t> runs = {};    // numbers of runs in SweepResult::runs, one for each seed
};

struct SweepResult {
  std::filesystem::path folder = {};  // with runs.csv, best.csv and plot.svg
  std::vector<SweptRun> runs = {};    // all, also those without results
  std::vector<BestRuns> best = {};
  std::string table = {};                // the best runs as text for people
  std::vector<std::string> failed = {};  // one line for each run that failed
  bool stopped = false;
};

// Does the runs of `grid`, or of the [sweep] of a file, that have no results yet. Each takes one thread and
// has the bits of gradwire run. Throw BadInput (one line), and std::runtime_error if results cannot be
// written.
GRADWIRE_API SweepResult sweep(const Experiment& experiment, const Grid& grid,
                               const SweepOptions& options = {});
// Does the same with the functions of the program. The runs go one at a time. `experiment` has
// problem.kind = "custom".
GRADWIRE_API SweepResult sweep(const Oracles& oracles, const Experiment& experiment, const Grid& grid,
                               const SweepOptions& options = {});
GRADWIRE_API SweepResult sweep(const std::filesystem::path& file, const SweepOptions& options = {});

}  // namespace gradwire
