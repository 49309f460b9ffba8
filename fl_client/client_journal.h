// The journal of a client: its state at the last snapshot, and one record for each answer since then, so that
// it can be killed and restarted. A record holds the answer if the used answers determine the state;
// otherwise it holds the request, which the client then answers again. The record is written before the
// answer is sent, so a client can always commit an answer that the server used.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "storage/folder_disk.h"
#include "storage/journal.h"

namespace gradwire {

class ClientJournal {
 public:
  // The disk must outlive the journal.
  ClientJournal(Disk& disk, Log log);

  // Returns the stored name of this client, or else stores and returns `fresh`.
  std::string name(const std::string& fresh);

  // Begins or resumes the run that `run` names. Passes the stored data of this run to `load` (the state) and
  // `recall` (the records, in order); they return false if it cannot be used. Drops the data of another run.
  struct Recovery {
    std::function<bool(std::string_view)> load, recall;
    bool recalls_fast = false;  // recall() computes no gradients, so any number of records may be read again
  };
  Status begin(const std::string& run, Durability durability, const Recovery& reader);

  // Writes a record. Call it before the answer is sent.
  Status remember(std::string_view record);
  // Returns whether it is time to call shorten().
  bool is_long() const {
    return records_ >= most_records_ ||
           bytes_ >= std::max(kLeastBytesPerSnapshot, kBytesPerSnapshotByte * snapshot_bytes_);
  }
  // Writes a snapshot. `state` is the state before the last record; Recovery::load will get it.
  Status shorten(const std::string& state);

 private:
  // A snapshot writes the state and the last record. The folder holds three snapshots and the records between
  // them. The number of records bounds the gradients that a restarted client computes again.
  static constexpr std::uint32_t kRecordsPerSnapshot = 64;
  static constexpr std::uint64_t kLeastBytesPerSnapshot = 1 << 20, kBytesPerSnapshotByte = 2;

  Disk& disk_;
  const Log log_;
  std::unique_ptr<Journal> journal_;
  std::string run_, last_;                            // last_: the last record
  std::uint32_t most_records_ = kRecordsPerSnapshot;  // before the next snapshot
  // The number and bytes of the records since the last snapshot, and the size of that snapshot.
  std::uint32_t records_ = 0;
  std::uint64_t bytes_ = 0, snapshot_bytes_ = 0;
};

// A folder that only one process uses.
class ClientFolder {
 public:
  // Creates the folder if it does not exist. Throws BadInput if it cannot, and std::runtime_error if another
  // client uses the folder, one line each.
  explicit ClientFolder(const std::filesystem::path& folder);
  FolderDisk& disk() { return disk_; }

 private:
  FolderDisk disk_;
  const FolderLock lock_;
};

}  // namespace gradwire
