// JSON output with nlohmann/json. Include it only in .cpp files, because it is slow to compile.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "rounds/round_loop.h"

namespace gradwire {

// A JSON value whose members keep the order in which they were added.
using Json = nlohmann::ordered_json;

// json_text() returns text that is indented by two spaces and ends with a newline. json_line() returns one
// line without a newline. A number that is not finite becomes null, a byte that is not UTF-8 becomes U+FFFD.
// Numbers read back to the same bits.
std::string json_text(const Json& json);
std::string json_line(const Json& json);

// Converts a record: Json(record) has a member for each column of metrics.csv.
void to_json(Json& json, const RoundRecord& record);

}  // namespace gradwire
