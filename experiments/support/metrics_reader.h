// metrics.csv read back.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "rounds/round_loop.h"

namespace gradwire {

// Parses a line without its newline; ignores columns that a later version appended. Nothing: not a line of
// metrics.csv.
std::optional<RoundRecord> parse_metrics_line(std::string_view line);

// The records of a metrics.csv. Ignores a last line without a newline, because it is still being written.
// Throws std::runtime_error (one line, with file and line number).
std::vector<RoundRecord> read_metrics(const std::filesystem::path& file);

}  // namespace gradwire
