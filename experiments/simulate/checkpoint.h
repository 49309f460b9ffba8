// The folder from which `gradwire run --resume` continues: beside that of the results, until the run is over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "proto/store/folder_disk.h"
#include "proto/store/journal.h"

namespace gradwire {

class Checkpoint {
 public:
  // `results`: the folder that the run will publish; `config`: its resolved experiment as text.
  Checkpoint(const std::filesystem::path& results, std::string config);

  struct Saved {
    std::string state;
    std::uint32_t round = 0;
  };
  // Returns the newest checkpoint that can be read, and copies its metrics.csv to `metrics`. Throws
  // UsageError where there is none, or where it is of another experiment.
  Saved resume(const std::filesystem::path& metrics);
  // Throws std::runtime_error (one line).
  void save(const Saved& saved, const std::filesystem::path& metrics);
  bool exists() const;
  // For a run that is over or starts from the beginning. Throws std::runtime_error where another process uses
  // the folder.
  void remove();
  bool used() const { return lock_.has_value(); }  // by this process

  const std::filesystem::path& folder() const { return folder_; }

 private:
  // Makes the folder and locks it.
  void open();

  const std::filesystem::path folder_;
  const std::string config_;
  std::optional<FolderLock> lock_;
  std::optional<FolderDisk> disk_;
  std::optional<Journal> journal_;
};

}  // namespace gradwire
