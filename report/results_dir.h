// The folder of a run's results. The run fills a hidden folder and publishes it at the end. Other files in
// the folder do not change.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "gradwire/bad_input.h"
#include "storage/folder_disk.h"

namespace gradwire {

// The error of a command line that cannot be carried out (exit code 2). what() is one line.
class UsageError : public BadInput {
 public:
  using BadInput::BadInput;
};

// The names in the config.toml of a folder of results.
struct RunIdentity {
  std::string name, algorithm, compressor;
};
// Reads these names. Returns nullopt if `folder` is not a folder of results.
std::optional<RunIdentity> identify_run(const std::filesystem::path& folder);

// Returns the name of the folder with the checkpoint of a run, next to that of its results.
std::string checkpoint_name(const std::string& run);

// A work folder that a run left without publishing it.
struct LeftRun {
  std::filesystem::path folder;
  std::string run;              // the name that the folder of its results would have
  bool is_kept = false;         // true if the run failed, false if it was killed
  bool has_checkpoint = false;  // the same command resumes the run
};
// Returns the left runs in the folder `results`, ordered by folder. Empty if `results` cannot be read.
std::vector<LeftRun> left_runs(const std::filesystem::path& results);

// Returns the work folder of the run that now fills `target`, or nullopt.
std::optional<std::filesystem::path> growing_results(const std::filesystem::path& target);

class ResultsDir {
 public:
  // Removes the work folders of killed runs next to `target`, and makes a new one there. Throws UsageError if
  // `target` exists, is not empty, and does not contain results of a run named `name`.
  ResultsDir(const std::filesystem::path& target, const std::string& name);
  // Removes the work folder unless it was published or kept.
  ~ResultsDir();
  ResultsDir(const ResultsDir&) = delete;
  ResultsDir& operator=(const ResultsDir&) = delete;

  const std::filesystem::path& work() const { return work_; }
  const std::filesystem::path& target() const { return target_; }

  // The folders of killed runs that the constructor removed.
  const std::vector<LeftRun>& cleared() const { return cleared_; }

  // Moves every file of the work folder into the target. Other files there do not change.
  void publish();
  // Makes the destructor keep the work folder, for a run that failed.
  void keep();

 private:
  void make_work_folder();
  void clear_abandoned();

  std::filesystem::path target_, work_;
  std::optional<FolderLock> lock_;  // marks the folder as in use
  std::vector<LeftRun> cleared_;
  bool made_parent_ = false, keep_ = false;
};

}  // namespace gradwire
