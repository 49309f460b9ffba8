// gradwire run: runs one experiment, from its file to its folder of results.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/experiment_file.h"
#include "experiments/cli/run/finished_run.h"
#include "experiments/cli/run/progress.h"
#include "mpi/ranks.h"
#include "report/energy.h"
#include "simulation/over_ranks.h"
#include "simulation/simulate.h"

namespace gradwire {

// The choice to resume an unfinished run from its checkpoint. kAuto resumes if there is a checkpoint. kYes
// requires one. kFresh moves it aside and starts a new run.
enum class Resume : std::uint8_t { kFresh, kYes, kAuto };

// The treatment of results in the run's folder. Equal results are replaced by any choice. kRefuse rejects
// those of other settings, and moves others of the same settings aside. kMoveAside moves all aside.
enum class EarlierResults : std::uint8_t { kRefuse, kMoveAside, kOverwrite };

struct RunRequest {
  std::filesystem::path out;  // empty for default_folder()
  TransportKind transport = TransportKind::kMemory;
  unsigned threads = 0;  // 0 for one per processor
  Verbosity verbosity = Verbosity::kNormal;
  Resume resume = Resume::kAuto;
  EarlierResults earlier = EarlierResults::kRefuse;
  double checkpoint_seconds = 30;  // from one checkpoint to the next; 0 for none
  Log log;                         // receives all lines unless `verbosity` is kQuiet
  bool figure = true;              // writes plot.svg and plot.py
  bool keeps_errors = false;  // an error of the run is thrown unchanged; else it says what files are left
  std::function<void(const RoundRecord&)> on_record = {};   // after every evaluation; the run has stored it
  std::function<void(std::uint32_t rounds)> on_round = {};  // after every round; not over TCP
  std::function<bool(const RoundRecord&)> is_enough =
      {};  // the hook LoopHooks::is_enough; not over a network
  // Gets what was measured if an exception ends the rounds. `folder` has its metrics.csv, or is empty.
  std::function<void(const FinishedRun&, const std::filesystem::path& folder)> on_failure = {};
  std::function<Prepared(const LoadedExperiment&)> prepare;  // null if the run reads its own data
  std::optional<EnergyFolders> energy;  // the folders of the counters; empty to skip them
  std::shared_ptr<Ranks> ranks;         // the ranks of this run; null if there is one process
};

struct RunReport {
  std::filesystem::path folder;  // folder of the results, absolute
  FinishedRun run;
  std::string trouble;    // one line on why the run ended early, and what to do; empty if it did not
  std::string last_line;  // names the results, the gap and the step; empty unless verbosity is kNormal
};

// An error on one of several ranks while the others continue. Call end_job() after it.
class RankFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs the experiment and writes its results, whatever the outcome is. If there are several ranks, the first
// one writes them. Throws ExperimentError, DataError, UsageError or std::runtime_error; with several ranks
// also FailedElsewhere or RankFailure.
RunReport run_experiment(const LoadedExperiment& loaded, const RunRequest& request,
                         const std::atomic<bool>& stop);

// Does the same without a folder: writes no file, and takes no checkpoints. One process runs all clients.
FinishedRun run_without_folder(const LoadedExperiment& loaded, const RunRequest& request,
                               const std::atomic<bool>& stop);

}  // namespace gradwire
