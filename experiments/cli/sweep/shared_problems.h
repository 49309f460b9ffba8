// The data, functions and constants that the runs of a sweep share.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "config/settings.h"
#include "samples/local_problem.h"
#include "simulation/prepare.h"

namespace gradwire {

// A cache of problems. Several threads may use it at the same time.
class SharedProblems {
 public:
  // The parts of the program that runs the sweep; its runs share them.
  explicit SharedProblems(Brought brought = {}) : brought_(std::move(brought)) {}

  // Announce a run of this problem, and that it has ended. The data are kept until all announced runs have
  // ended.
  void expect(const Settings& run);
  void leave(const Settings& run);

  // Returns the same as the function prepare(), but with shared functions in place of the data. Reads each
  // file once. Throws ExperimentError, DataError.
  Prepared prepare(const LoadedExperiment& loaded);

  // Returns a key that is equal for runs with the same functions. Runs that are sorted by it use one problem
  // after another.
  static std::string key_of(const Settings& run);

 private:
  struct SharedProblem;
  std::shared_ptr<SharedProblem> find(const Settings& run);
  Reading reading();

  const Brought brought_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<SharedProblem>> problems_;

  // The files that were read, by source, folder and number of features. Two runs may read one file in two
  // ways.
  template <class Samples>
  struct Files {
    std::mutex mutex;  // held while a file is read, so that other threads wait and do not read it again
    std::map<std::string, std::shared_ptr<const Samples>> read;
  };
  Files<Dataset> rows_;
  Files<Windows> texts_;
};

}  // namespace gradwire
