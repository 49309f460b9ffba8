// Reads metrics.csv.
#pragma once

#include <filesystem>
#include <vector>

#include "rounds/round_loop.h"

namespace gradwire {

// Returns the records of a metrics.csv. Ignores a last line without a newline, because it is still being
// written. Throws std::runtime_error (one line, with file and line number).
std::vector<RoundRecord> read_metrics(const std::filesystem::path& file);

}  // namespace gradwire
