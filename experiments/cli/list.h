#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gradwire {

// Returns the names and keys that an experiment file can use, and the runs in the folder `results` that ended
// without results. The names and keys come from the tables that the program itself uses. `topic` is
// algorithms, compressors, optimizers, problems, keys, runs, or empty for all. Throws UsageError.
std::string list_text(std::string_view topic, const std::filesystem::path& results);

}  // namespace gradwire
