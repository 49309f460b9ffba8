#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gradwire {

// Returns what can be written in an experiment file, from the tables that the program itself uses, and the
// runs in the folder `results` that have ended without results. `topic`: algorithms, compressors, optimizers,
// problems, keys, runs, or empty for all. Throws UsageError.
std::string list_text(std::string_view topic, const std::filesystem::path& results);

}  // namespace gradwire
