// What a client remembers on disk, so that it can be killed and started again: its state as of the last
// snapshot, and a record of every answer since: the answer itself where the state follows from those that
// were used, else its request, which it answers again. Records are kept before the answer is sent, so a
// server that used an answer meets a client that can commit it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "proto/folder_disk.h"
#include "proto/journal.h"
#include "proto/log.h"

namespace gradwire {

class ClientMemory {
 public:
  // The disk must outlive the memory.
  ClientMemory(Disk& disk, Log log);

  // The name of this client: the one remembered, or else `fresh`, which is remembered from now on.
  std::string name(const std::string& fresh);

  // Begins or goes on with the run that `run` names. What is remembered of it is handed to `load` (the state)
  // and `recall` (records, in order); false: it cannot be used. What is of another run is forgotten.
  struct Reader {
    std::function<bool(std::string_view)> load, recall;
  };
  Status begin(const std::string& run, Durability durability, const Reader& reader);

  // To be called before the answer is sent.
  Status remember(std::string_view record);
  // A snapshot is worth its while: `state` is what Reader::load takes, as it is without the last record.
  bool is_long() const {
    return records_ >= kRecordsPerSnapshot ||
           bytes_ >= std::max(kLeastBytesPerSnapshot, kBytesPerSnapshotByte * snapshot_bytes_);
  }
  Status shorten(const std::string& state);

 private:
  // A snapshot writes the state and the last record; the folder holds three of them and what lies between.
  static constexpr std::uint32_t kRecordsPerSnapshot = 64;
  static constexpr std::uint64_t kLeastBytesPerSnapshot = 1 << 20, kBytesPerSnapshotByte = 2;

  Disk& disk_;
  const Log log_;
  std::unique_ptr<Journal> journal_;
  std::string run_, last_;  // last_: the last record
  // Since the last snapshot; and of that one.
  std::uint32_t records_ = 0;
  std::uint64_t bytes_ = 0, snapshot_bytes_ = 0;
};

// A folder of one process's own.
class ClientFolder {
 public:
  // Made where there is none. Throws std::runtime_error (one line), also when another process uses it.
  explicit ClientFolder(const std::filesystem::path& folder);
  FolderDisk& disk() { return disk_; }

 private:
  FolderDisk disk_;
  const FolderLock lock_;
};

}  // namespace gradwire
