// What the runs of a sweep share: their data, the functions made of them, and their constants.
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

// Threads may share it.
class SharedProblems {
 public:
  // One more run of this problem is to come. Its data are kept until it has left.
  void expect(const Settings& run);
  void leave(const Settings& run);

  // What prepare() gives, with functions in place of data. Files are read once. Throws ExperimentError,
  // DataError.
  Prepared prepare(const LoadedExperiment& loaded);

  // Equal keys: the same functions. Runs go through the problems one after the other where they are sorted by
  // it.
  static std::string key_of(const Settings& run);

 private:
  struct SharedProblem;
  std::shared_ptr<SharedProblem> find(const Settings& run);
  Reading reading();

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<SharedProblem>> problems_;

  // By source, folder and number of features: two runs may read one file in two ways.
  template <class Samples>
  struct Files {
    std::mutex mutex;  // held while a file is read: others wait for it rather than read it, too
    std::map<std::string, std::shared_ptr<const Samples>> read;
  };
  Files<Dataset> rows_;
  Files<Windows> texts_;
};

}  // namespace gradwire
