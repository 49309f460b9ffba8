// Files that are replaced in one step.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "storage/disk.h"

namespace gradwire {

// Readers see the old contents or the new ones, never a part; after the return the new ones survive a loss of
// power. Throws std::runtime_error.
void write_whole(const std::filesystem::path& file, std::string_view bytes);
void write_whole(const std::filesystem::path& file, Disk::Segments pieces);
void write_whole(Disk& disk, const std::string& name, std::string_view bytes);
void write_whole(Disk& disk, const std::string& name, Disk::Segments pieces);

// The folder that the file is in.
std::shared_ptr<Disk> disk_of(const std::filesystem::path& file);

}  // namespace gradwire
