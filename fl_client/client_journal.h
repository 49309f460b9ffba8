// What a client remembers on disk, so that it can be killed and started again: its state at the last
// snapshot, and one record for every answer since then. A record holds the answer itself where the state
// follows from the used answers; else it holds the request, which the client answers again. The record is
// written before the answer is sent, so a client can always commit an answer that the server used.
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
  // The disk must outlive the memory.
  ClientJournal(Disk& disk, Log log);

  // The name of this client: the one remembered, or else `fresh`, which is remembered from now on.
  std::string name(const std::string& fresh);

  // Begins or continues the run that `run` names. Hands what is remembered of this run to `load` (the state)
  // and `recall` (records, in order); they return false when it cannot be used. Forgets another run.
  struct Recovery {
    std::function<bool(std::string_view)> load, recall;
  };
  Status begin(const std::string& run, Durability durability, const Recovery& reader);

  // To be called before the answer is sent.
  Status remember(std::string_view record);
  // It is time for a snapshot: shorten(). Its `state` is what Recovery::load takes, before the last record.
  bool is_long() const {
    return records_ >= kRecordsPerSnapshot ||
           bytes_ >= std::max(kLeastBytesPerSnapshot, kBytesPerSnapshotByte * snapshot_bytes_);
  }
  Status shorten(const std::string& state);

 private:
  // A snapshot writes the state and the last record; the folder holds three snapshots and the records
  // between.
  static constexpr std::uint32_t kRecordsPerSnapshot = 64;
  static constexpr std::uint64_t kLeastBytesPerSnapshot = 1 << 20, kBytesPerSnapshotByte = 2;

  Disk& disk_;
  const Log log_;
  std::unique_ptr<Journal> journal_;
  std::string run_, last_;  // last_: the last record
  // Since the last snapshot; snapshot_bytes_: of that snapshot.
  std::uint32_t records_ = 0;
  std::uint64_t bytes_ = 0, snapshot_bytes_ = 0;
};

// A folder that only one process uses.
class ClientFolder {
 public:
  // Makes the folder if there is none. Throws std::runtime_error (one line), also when another process uses
  // it.
  explicit ClientFolder(const std::filesystem::path& folder);
  FolderDisk& disk() { return disk_; }

 private:
  FolderDisk disk_;
  const FolderLock lock_;
};

}  // namespace gradwire
