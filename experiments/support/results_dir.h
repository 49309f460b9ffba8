// The folder of a run's results. The run fills a hidden folder and publishes it at the end; files of others
// stay as they are.
#pragma once

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "proto/store/folder_disk.h"

namespace gradwire {

// The command line asks for something that cannot be done; exit code 2. what() is one line.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the config.toml of a folder of results says.
struct RunIdentity {
  std::string name, algorithm, compressor;
};
// Nothing: no folder of results.
std::optional<RunIdentity> identify_run(const std::filesystem::path& folder);

class ResultsDir {
 public:
  // Makes a work folder beside `target`. Throws UsageError when `target` exists and is neither empty nor
  // holds results of a run called `name`.
  ResultsDir(const std::filesystem::path& target, const std::string& name);
  // Removes the work folder unless it was published or kept.
  ~ResultsDir();
  ResultsDir(const ResultsDir&) = delete;
  ResultsDir& operator=(const ResultsDir&) = delete;

  const std::filesystem::path& work() const { return work_; }
  const std::filesystem::path& target() const { return target_; }

  // The folders of killed runs that the constructor found beside it and removed.
  const std::vector<std::filesystem::path>& cleared() const { return cleared_; }

  // Puts every file of the work folder into the target; other files there stay as they are.
  void publish();
  // Leaves the work folder where it is, for a run that failed.
  void keep();

 private:
  void make_work_folder();
  void clear_abandoned();

  std::filesystem::path target_, work_;
  std::optional<FolderLock> lock_;  // says that the folder is in use
  std::vector<std::filesystem::path> cleared_;
  bool made_parent_ = false, keep_ = false;
};

}  // namespace gradwire
