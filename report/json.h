// JSON, by nlohmann/json, and how gradwire writes it. Slow to compile: for .cpp files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "rounds/round_loop.h"

namespace gradwire {

// Members keep the order in which they were added.
using Json = nlohmann::ordered_json;

// The text, indented by two spaces and with a newline at its end; the shorter text is one line without a
// newline. A number that is not finite becomes null, a byte that is not UTF-8 U+FFFD. Numbers read back to
// the same bits.
std::string json_text(const Json& json);
std::string json_line(const Json& json);

// So that Json(record) has a member for each column of metrics.csv.
void to_json(Json& json, const RoundRecord& record);

}  // namespace gradwire
