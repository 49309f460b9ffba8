#include "storage/atomic_file.h"

#include <span>

#include "storage/folder_disk.h"

namespace gradwire {

void write_whole(Disk& disk, const std::string& name, std::string_view bytes) {
  write_whole(disk, name, std::span(&bytes, 1));
}

void write_whole(Disk& disk, const std::string& name, Disk::Segments segments) {
  const std::string draft = name + ".new";
  throw_if_failed(disk.write(draft, segments));
  throw_if_failed(disk.sync(draft));
  throw_if_failed(disk.rename(draft, name));
  throw_if_failed(disk.sync_folder());
}

void write_whole(const std::filesystem::path& file, std::string_view bytes) {
  write_whole(file, std::span(&bytes, 1));
}

void write_whole(const std::filesystem::path& file, Disk::Segments segments) {
  write_whole(*disk_of(file), file.filename().string(), segments);
}

std::shared_ptr<Disk> disk_of(const std::filesystem::path& file) {
  return std::make_shared<FolderDisk>(file.has_parent_path() ? file.parent_path()
                                                             : std::filesystem::path("."));
}

}  // namespace gradwire
