// Atomic replacement of files.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "storage/disk.h"

namespace gradwire {

// Writes a whole file. Readers see the old contents or the new ones, never a part. On return, the new
// contents survive a power loss. Throws std::runtime_error.
void write_whole(const std::filesystem::path& file, std::string_view bytes);
void write_whole(const std::filesystem::path& file, Disk::Segments segments);
void write_whole(Disk& disk, const std::string& name, std::string_view bytes);
void write_whole(Disk& disk, const std::string& name, Disk::Segments segments);

// Returns the folder that contains the file.
std::shared_ptr<Disk> disk_of(const std::filesystem::path& file);

}  // namespace gradwire
