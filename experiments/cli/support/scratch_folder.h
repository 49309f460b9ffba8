// A private folder in the system's folder for temporary files. The destructor removes it and its contents.
#pragma once

#include <filesystem>
#include <optional>

#include "storage/folder_disk.h"

namespace gradwire {

class ScratchFolder {
 public:
  // Makes the folder, and removes folders that killed processes of this user left. Throws std::runtime_error
  // (one line).
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::optional<FolderLock> lock_;  // held while the process lives
};

}  // namespace gradwire
