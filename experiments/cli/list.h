#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gradwire {

// Returns the names and keys that an experiment file can use, and the runs in the folder `results` that ended
// without results. The names and keys come from the tables that the program itself uses. `word` is a topic
// (algorithms, compressors, optimizers, problems, keys, metrics, data, experiments, runs), the name of an
// entry of a topic, or a synonym of one. If it is empty, the text has the first five topics and the runs.
// Throws UsageError.
std::string list_text(std::string_view word, const std::filesystem::path& results);

}  // namespace gradwire
