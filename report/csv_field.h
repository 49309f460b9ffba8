// Text as a field of CSV.
#pragma once

#include <string>

namespace gradwire {

// Returns `text`, in quotes if it has a comma, a quote or an end of line.
inline std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string inside = text;
  for (std::size_t at = 0; (at = inside.find('"', at)) != std::string::npos; at += 2)
    inside.insert(at, 1, '"');
  return "\"" + inside + "\"";
}

}  // namespace gradwire
