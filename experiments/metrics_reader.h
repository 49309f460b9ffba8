// metrics.csv read back.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "fl_server/round_loop.h"

namespace gradwire {

// A line without its newline; columns that a later version appended are passed over. Nothing: not a line of
// metrics.csv.
std::optional<RoundRecord> parse_metrics_line(std::string_view line);

// The records of a metrics.csv. A last line without a newline is one that is still being written, and is left
// out. Throws std::runtime_error (one line, with file and line number).
std::vector<RoundRecord> read_metrics(const std::filesystem::path& file);

}  // namespace gradwire
