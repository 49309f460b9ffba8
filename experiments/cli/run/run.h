// gradwire run: one experiment from its file to its folder of results.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/experiment_file.h"
#include "experiments/cli/run/progress.h"
#include "mpi/ranks.h"
#include "simulation/over_ranks.h"
#include "simulation/simulate.h"

namespace gradwire {

// Whether to go on from the checkpoint of a run that did not end. kAuto: where there is one.
enum class Resume : std::uint8_t { kNo, kYes, kAuto };

struct RunRequest {
  std::filesystem::path out;  // empty: results/NAME
  TransportKind transport = TransportKind::kMemory;
  unsigned threads = 0;  // 0: one per processor
  Verbosity verbosity = Verbosity::kNormal;
  Resume resume = Resume::kNo;
  double checkpoint_seconds = 30;                            // from one checkpoint to the next; 0: none
  Log log;                                                   // unless it is to be quiet
  bool figure = true;                                        // plot.svg and plot.py of the run
  std::function<Prepared(const LoadedExperiment&)> prepare;  // null: the run reads its own data
  std::optional<std::filesystem::path> energy;               // where counters of energy are; nothing: unread
  std::shared_ptr<Ranks> ranks;  // that make this run together; null: this process alone
};

struct RunReport {
  std::filesystem::path folder;  // of the results, absolute
  RunResult result;
  std::string trouble;  // one line on why the run ended early, and what to do; empty: it did not
};

// An error on one of several ranks while others go on: to be followed by end_job().
class RankFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs, and writes the results whatever the outcome; of several ranks the first one writes them. Throws
// ExperimentError, DataError, UsageError, or std::runtime_error; of several ranks FailedElsewhere or
// RankFailure, too.
RunReport run_experiment(const LoadedExperiment& loaded, const RunRequest& request,
                         const std::atomic<bool>& stop);

}  // namespace gradwire
