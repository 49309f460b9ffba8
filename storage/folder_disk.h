// A disk that is a folder of the local file system, and the lock on that folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "storage/disk.h"

namespace gradwire {

class OpenFile;

class FolderDisk final : public Disk {
 public:
  // The folder must exist before the first call.
  explicit FolderDisk(std::filesystem::path folder);

  Result<std::vector<std::string>> list() override;
  Result<std::string> read(const std::string& name) override;
  Status write(const std::string& name, Segments segments) override;
  Status write_chunks(const std::string& name, const std::function<std::string_view()>& next) override;
  Status append(const std::string& name, Segments segments) override;
  Status sync(const std::string& name) override;
  Status sync_folder() override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& name) override;

 private:
  Error failed(const std::string& name, const char* what) const;
  // Fails if the path leads to another folder than at the first call, for example after an unmount. Data
  // written there would be lost for the run.
  Status check_folder();
  // Opens a file to write it whole. Replaces a symbolic link instead of following it.
  int open_draft(const std::string& name) const;
  std::shared_ptr<const OpenFile> open_log(const std::string& name) const;  // null if it is not open

  void close_log(const std::string& name);

  const std::filesystem::path folder_;
  mutable std::mutex opening_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> identity_;  // device and inode of the folder
  // The file that was appended to last. It stays open; another thread may sync it.
  std::string open_name_;
  std::shared_ptr<const OpenFile> open_;
};

// Creates the folder and its missing parents, so that they survive a power loss. Returns false, with errno
// set, if the path is not a folder and cannot become one.
bool make_folder(const std::filesystem::path& folder);

// A lock that one process at a time holds, even if its file is removed. The system releases it when the
// process ends in any way.
class FolderLock {
 public:
  // Makes `folder`/lock. Throws std::runtime_error (one line) if another process holds the lock, with the
  // number of that process, or if this process lacks file descriptors. Throws std::invalid_argument if the
  // folder cannot be used.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_fd_ = -1;  // the folder itself, if the file system can lock it
  int fd_ = -1;
};

// Returns the number of the process that holds the lock of `folder`, or nullopt if none does.
std::optional<std::string> lock_holder(const std::filesystem::path& folder);

}  // namespace gradwire
