// The folder of a run's results. The run fills a hidden folder and publishes it at the end; files of others
// stay as they are.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/bad_input.h"
#include "storage/folder_disk.h"

namespace gradwire {

// The command line asks for something that cannot be done; exit code 2. what() is one line.
class UsageError : public BadInput {
 public:
  using BadInput::BadInput;
};

// What the config.toml of a folder of results says.
struct RunIdentity {
  std::string name, algorithm, compressor;
};
// Nothing: no folder of results.
std::optional<RunIdentity> identify_run(const std::filesystem::path& folder);

// Returns the name of the folder with the checkpoint of a run, next to that of its results.
std::string checkpoint_name(const std::string& run);

// A work folder of a run that is over and did not publish it.
struct LeftRun {
  std::filesystem::path folder;
  std::string run;              // the name of the folder that its results would have got
  bool is_kept = false;         // the run failed; false: it was killed
  bool has_checkpoint = false;  // --resume continues the run
};
// Returns those in the folder `results`, in order of their names; none if it cannot be read.
std::vector<LeftRun> left_runs(const std::filesystem::path& results);

class ResultsDir {
 public:
  // Removes what killed runs left next to `target`, and makes a work folder there. Throws UsageError when
  // `target` exists and is neither empty nor holds results of a run called `name`.
  ResultsDir(const std::filesystem::path& target, const std::string& name);
  // Removes the work folder unless it was published or kept.
  ~ResultsDir();
  ResultsDir(const ResultsDir&) = delete;
  ResultsDir& operator=(const ResultsDir&) = delete;

  const std::filesystem::path& work() const { return work_; }
  const std::filesystem::path& target() const { return target_; }

  // The folders of killed runs that the constructor removed.
  const std::vector<LeftRun>& cleared() const { return cleared_; }

  // Puts every file of the work folder into the target; other files there stay as they are.
  void publish();
  // Leaves the work folder where it is, for a run that failed.
  void keep();

 private:
  void make_work_folder();
  void clear_abandoned();

  std::filesystem::path target_, work_;
  std::optional<FolderLock> lock_;  // says that the folder is in use
  std::vector<LeftRun> cleared_;
  bool made_parent_ = false, keep_ = false;
};

}  // namespace gradwire
