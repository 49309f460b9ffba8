// A new run in a state folder that has an earlier one.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "storage/folder_disk.h"
#include "storage/journal.h"

namespace gradwire {

// Moves the run in the folder `state`, its results included, to the subfolder before/ or another unused name,
// and returns the subfolder. Returns nullopt if the folder has no run. The registry and other files stay.
Result<std::optional<std::filesystem::path>> set_run_aside(const std::filesystem::path& state,
                                                           FolderDisk& disk, Journal& journal);

}  // namespace gradwire
