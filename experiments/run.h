// gradwire run: one experiment from its file to its folder of results.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "experiments/simulate/simulate.h"
#include "experiments/support/progress.h"
#include "proto/config/experiment_file.h"

namespace gradwire {

struct RunRequest {
  std::filesystem::path out;  // empty: results/NAME
  TransportKind transport = TransportKind::kMemory;
  unsigned threads = 0;  // 0: one per processor
  Verbosity verbosity = Verbosity::kNormal;
  bool resume = false;             // go on from the checkpoint of a run that did not end
  double checkpoint_seconds = 30;  // from one checkpoint to the next; 0: none
  Log log;                         // unless it is to be quiet
};

struct RunReport {
  std::filesystem::path folder;  // of the results, absolute
  RunResult result;
  std::string trouble;  // one line on why the run ended early, and what to do; empty: it did not
};

// Runs, and writes the results whatever the outcome. Throws ExperimentError, DataError, UsageError, or
// std::runtime_error.
RunReport run_experiment(const LoadedExperiment& loaded, const RunRequest& request,
                         const std::atomic<bool>& stop);

}  // namespace gradwire
