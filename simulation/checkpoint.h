// Checkpoint folder of a run, from which `gradwire run` resumes. It is next to the results folder,
// and is removed once the run is over.
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

// The inputs that determine a run.
struct RunInputs {
  std::string config;                     // the resolved experiment as text, with old names
  std::uint64_t samples = 0, traces = 0;  // hashes of the files that the run reads (input_hash.h)
  std::uint64_t program = 0;              // hash of what the program brings
};

class RunCheckpoint {
 public:
  // `results` is the folder that the run will publish. `metadata` must be the same when the run is resumed.
  // Each snapshot has a copy of `metrics`, the file that the run writes.
  RunCheckpoint(const std::filesystem::path& results, const RunInputs& metadata,
                std::filesystem::path metrics);

  struct Saved {
    // tag and bytes of each section of a RunStore snapshot
    std::vector<std::pair<std::uint32_t, std::string>> sections;
    std::uint32_t round = 0;
    Plateau plateau;  // state of the metrics; find() leaves it empty
  };
  // Returns the newest readable snapshot, or nullopt if none exists. Its copy of metrics.csv replaces the
  // run's metrics. Throws UsageError if the snapshot is damaged or belongs to another experiment; the
  // checkpoint then stays.
  std::optional<Saved> find();
  // Like find(), but also throws UsageError if it finds nothing.
  Saved resume();
  // Returns the journal for the run's RunStore. Call prepare() before each snapshot: it makes the folder if
  // necessary and copies the metrics.
  Journal& journal() { return journal_; }
  Status prepare();
  bool exists() const;
  // Returns true if there is a snapshot from which the next process resumes.
  bool has_snapshot();
  const std::filesystem::path& folder() const { return folder_; }
  // Renames the checkpoint, and returns its new folder; removes it if it has no snapshot. Returns nullopt if
  // none is left. Call it before the other functions. Throws std::runtime_error if another process uses it.
  std::optional<std::filesystem::path> set_aside();
  // Removes the checkpoint of a run that is over, or one without a snapshot. Throws std::runtime_error if
  // another process uses the folder.
  void remove();
  bool used() const { return lock_.has_value(); }  // true if this process has locked the folder

  // Adds a file to copy into each snapshot, like the metrics.
  void copy_also(std::filesystem::path file) { files_.push_back(std::move(file)); }

  const std::string& metadata() const { return metadata_; }  // for the RunStore

 private:
  // Makes the folder and locks it.
  void open();
  // Replaces the checkpoint's copy of a file of the run.
  Status copy(const std::filesystem::path& file);

  const std::filesystem::path folder_;
  const std::string metadata_;
  std::vector<std::filesystem::path> files_;  // the metrics come first
  std::optional<FolderLock> lock_;
  FolderDisk disk_;
  Journal journal_;
};

}  // namespace gradwire
