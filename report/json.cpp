#include "report/json.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/printable.h"
#include "report/columns.h"

namespace gradwire {
namespace {

std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string json_text(const Json& json) {
  const std::string text = dumped(json, 2);
  std::string safe;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    safe += printable(std::string_view(text).substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return safe;
}

// The escapes of printable() are also valid in JSON.
std::string json_line(const Json& json) { return printable(dumped(json, -1)); }

void to_json(Json& json, const RoundRecord& record) {
  json = Json::object();
  const auto add = [&](const char* name, const auto& value) { json[name] = value; };
  metric_columns(record, [&](const char* name, const auto& value, std::string_view) {
    if constexpr (std::is_same_v<decltype(value), const std::optional<double>&>)
      value ? add(name, *value) : add(name, nullptr);
    else
      add(name, value);
  });
}

}  // namespace gradwire
