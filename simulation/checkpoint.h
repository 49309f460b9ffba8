// The folder from which `gradwire run --resume` continues: beside that of the results, until the run is over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rounds/round_loop.h"
#include "storage/folder_disk.h"
#include "storage/journal.h"

namespace gradwire {

// What a run is made of.
struct RunInputs {
  std::string config;                     // the resolved experiment as text
  std::uint64_t samples = 0, traces = 0;  // hashes of the files that it reads (input_hash.h)
};

class RunCheckpoint {
 public:
  // `results`: the folder that the run will publish; `metadata`: what must not change before the run is
  // resumed; `metrics`: the file that the run writes, of which each snapshot has a copy.
  RunCheckpoint(const std::filesystem::path& results, const RunInputs& metadata,
                std::filesystem::path metrics);

  struct Saved {
    std::vector<std::pair<std::uint32_t, std::string>> sections;  // of a RunStore's snapshot: tag and bytes
    std::uint32_t round = 0;
    Lull lull;  // of the metrics; find() leaves it empty
  };
  // The newest snapshot that can be read, if there is one; its copy of metrics.csv becomes the run's. Throws
  // UsageError where it is of another experiment, or damaged.
  std::optional<Saved> find();
  // The same; throws UsageError where there is none, too.
  Saved resume();
  // For the RunStore of the run. prepare() comes before each snapshot: it makes the folder, if there is none,
  // and copies the metrics.
  Journal& journal() { return journal_; }
  Status prepare();
  bool exists() const;
  // Returns true if there is a snapshot from which --resume continues.
  bool has_snapshot();
  // For a run that is over or starts from the beginning. Throws std::runtime_error where another process uses
  // the folder.
  void remove();
  bool used() const { return lock_.has_value(); }  // by this process

  // Adds a file of the run of which each snapshot has a copy, as of the metrics.
  void copy_also(std::filesystem::path file) { files_.push_back(std::move(file)); }

  const std::string& metadata() const { return metadata_; }  // of the RunStore

 private:
  // Makes the folder and locks it.
  void open();
  // Replaces the folder's copy of a file of the run.
  Status copy(const std::filesystem::path& file);

  const std::filesystem::path folder_;
  const std::string metadata_;
  std::vector<std::filesystem::path> files_;  // the metrics first
  std::optional<FolderLock> lock_;
  FolderDisk disk_;
  Journal journal_;
};

}  // namespace gradwire
