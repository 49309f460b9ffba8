#include "report/columns.h"

#include <array>
#include <charconv>
#include <cstdio>

namespace gradwire {
namespace {

template <class Integer>
std::string cell_of(Integer value) {
  return std::to_string(value);
}
std::string cell_of(double value) {
  std::array<char, 32> text;
  const int size = std::snprintf(text.data(), text.size(), "%.17g", value);
  return std::string(text.data(), static_cast<std::size_t>(size));
}
std::string cell_of(const std::optional<double>& value) { return value ? cell_of(*value) : std::string(); }

template <class T>
bool read_cell(std::string_view cell, T& value) {
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && end == cell.data() + cell.size();
}
bool read_cell(std::string_view cell, std::optional<double>& value) {
  return cell.empty() || read_cell(cell, value.emplace());
}

// Returns whether files of older versions lack the column.
bool may_lack(std::string_view name) {
  return name == "bits_up_paper" || name == "bits_down_paper" || name == "sim_seconds" ||
         name.starts_with("lyapunov") || name == "evaluation_bytes_up" || name == "evaluation_bytes_down";
}

}  // namespace

const std::string& metrics_header() {
  static const std::string header = [] {
    std::string names;
    const RoundRecord any;
    metric_columns(any, [&](std::string_view name, const auto&, std::string_view) {
      names += (names.empty() ? "" : ",") + std::string(name);
    });
    return names;
  }();
  return header;
}

std::string metrics_line(const RoundRecord& record) {
  std::string line;
  metric_columns(record, [&](std::string_view name, const auto& value, std::string_view) {
    line += (name == "round" ? "" : ",") + cell_of(value);
  });
  return line;
}

std::optional<RoundRecord> parse_metrics_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  RoundRecord record;
  bool whole = true, ended = false;
  metric_columns(record, [&](std::string_view name, auto& value, std::string_view) {
    if (ended) {
      whole = whole && may_lack(name);
      return;
    }
    const std::size_t comma = line.find(',');
    whole = whole && read_cell(line.substr(0, comma), value);
    ended = comma == std::string_view::npos;
    line.remove_prefix(ended ? line.size() : comma + 1);
  });
  return whole ? std::optional(record) : std::nullopt;
}

}  // namespace gradwire
