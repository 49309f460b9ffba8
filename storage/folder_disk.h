// A disk that is a folder of this machine's file system, and the lock on it. The one part of this room that
// does I/O, here because both ends of a connection remember things.
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
  // The folder must be there before the first call.
  explicit FolderDisk(std::filesystem::path folder);

  Result<std::vector<std::string>> list() override;
  Result<std::string> read(const std::string& name) override;
  Status write(const std::string& name, Segments pieces) override;
  Status write_chunks(const std::string& name, const std::function<std::string_view()>& next) override;
  Status append(const std::string& name, Segments pieces) override;
  Status sync(const std::string& name) override;
  Status sync_folder() override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& name) override;

 private:
  Error failed(const std::string& name, const char* what) const;
  // Fails if the path leads to another folder than at the first call, as after an unmount: what is written
  // there would be lost for the run.
  Status check_folder();
  // Opens a file to be written whole; replaces a symbolic link instead of following it.
  int open_draft(const std::string& name) const;
  std::shared_ptr<const OpenFile> open_log(const std::string& name) const;  // null: it is not open

  void close_log(const std::string& name);

  const std::filesystem::path folder_;
  mutable std::mutex opening_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> identity_;  // device and inode of the folder
  // The file that was appended to last stays open; another thread may be syncing it.
  std::string open_name_;
  std::shared_ptr<const OpenFile> open_;
};

// Creates the folder and its missing parents, so that they survive a loss of power. False: the path is no
// folder and cannot become one, and errno says why.
bool make_folder(const std::filesystem::path& folder);

// One process at a time holds it, also if its file is removed; the system releases it when the process ends,
// however it ends.
class FolderLock {
 public:
  // Makes `folder`/lock. Throws, in one line, std::runtime_error that names the process that holds it or if
  // this one lacks file descriptors, or std::invalid_argument that says why the folder cannot be used.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int folder_fd_ = -1;  // the folder itself, where the file system can lock it
  int fd_ = -1;
};

// The number of the process that holds the lock of `folder`; nothing: nobody does.
std::optional<std::string> lock_holder(const std::filesystem::path& folder);

}  // namespace gradwire
