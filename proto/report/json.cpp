#include "proto/report/json.h"

#include <optional>

#include "proto/report/columns.h"

namespace gradwire {
namespace {

std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string json_text(const Json& json) { return dumped(json, 2) + "\n"; }

std::string json_line(const Json& json) { return dumped(json, -1); }

void to_json(Json& json, const RoundRecord& record) {
  json = Json::object();
  const auto add = [&](const char* name, const auto& value) { json[name] = value; };
  metric_columns(record, [&](const char* name, const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const std::optional<double>&>)
      value ? add(name, *value) : add(name, nullptr);
    else
      add(name, value);
  });
}

}  // namespace gradwire
