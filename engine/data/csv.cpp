#include "engine/data/csv.h"

#include <algorithm>
#include <cmath>

#include "engine/data/lines.h"

namespace gradwire {
namespace {

// Splits `line` at commas into `fields`, blanks around each removed.
void split_fields(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(trim(line.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

bool is_header(const std::vector<std::string_view>& fields) {
  return std::none_of(fields.begin(), fields.end(),
                      [](std::string_view f) { return parse_number(f).has_value(); });
}

double parse_field(std::string_view field, std::size_t position, const std::string& file, std::size_t line) {
  const auto number = parse_number(field);
  if (number && std::isfinite(*number)) return *number;
  throw error_at(
      file, line,
      "field " + std::to_string(position + 1) + ", " + quoted(field) +
          (number ? ", is not finite; remove or replace it" : ", is not a number; columns must be numeric"));
}

Dataset parse(Lines& lines, const std::string& file, const KeepRow& keep) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // spreadsheets write it
  Dataset data;
  std::vector<std::string_view> fields;
  std::size_t expected = 0;  // fields per line, 0 before the first line
  while (auto line = lines.next()) {
    if (lines.number() == 1 && line->starts_with(kByteOrderMark)) line->remove_prefix(kByteOrderMark.size());
    if (line->empty()) continue;
    const bool first = expected == 0;
    if (!first && keep && !keep(data.rows())) {
      const std::string_view label = trim(line->substr(line->rfind(',') + 1));
      data.label.push_back(parse_field(label, expected - 1, file, lines.number()));
      data.row_start.push_back(data.column.size());
      continue;
    }
    split_fields(*line, fields);
    if (first) expected = fields.size();
    if (expected < 2) throw error_at(file, lines.number(), "one field; expected features and, last, a label");
    if (fields.size() != expected) {
      throw error_at(file, lines.number(),
                     std::to_string(fields.size()) + " fields where the first line has " +
                         std::to_string(expected) + "; make them equal");
    }
    if (first && is_header(fields)) continue;
    for (std::size_t i = 0; i < expected; ++i) {
      const double number = parse_field(fields[i], i, file, lines.number());
      if (i + 1 == expected) {
        data.label.push_back(number);
      } else if (number != 0) {
        data.column.push_back(static_cast<std::uint32_t>(i));
        data.value.push_back(number);
      }
    }
    data.row_start.push_back(data.column.size());
  }
  if (data.rows() == 0) throw DataError(file + ": holds no samples; each line is FEATURE,...,FEATURE,LABEL");
  data.columns = expected - 1;
  return data;
}

}  // namespace

Dataset parse_csv(std::string_view text, const std::string& file) {
  Lines lines(text);
  return parse(lines, file, {});
}

Dataset parse_csv(ByteStream& text, const std::string& file, const KeepRow& keep) {
  Lines lines(text);
  return parse(lines, file, keep);
}

}  // namespace gradwire
