#include "engine/data/readers/delimited.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/text_lines.h"
#include "engine/data/readers/lines.h"

namespace gradwire {
namespace {

// Returns true for digits with a separator before each group of three, as in -1.234.567.
bool is_grouped(std::string_view text, char separator) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  for (bool is_first = true;; is_first = false) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view group = text.substr(0, end);
    if (!std::ranges::all_of(group, [](char c) { return c >= '0' && c <= '9'; })) return false;
    if (is_first ? group.empty() || group.size() > 3 : group.size() != 3) return false;
    if (end == text.size()) return true;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

bool equal_in_any_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_missing_value(std::string_view field) {
  static constexpr auto kMarks = std::to_array<std::string_view>(
      {"?", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None", "#N/A", "#N/A N/A",
       "#NA", "<NA>", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"});
  return field.empty() || std::ranges::find(kMarks, field) != kMarks.end();
}

bool is_missing_number(std::string_view field) {
  static constexpr auto kMarks =
      std::to_array<std::string_view>({"-", ".", "na", "n/a", "nan", "null", "none"});
  return is_missing_value(field) ||
         std::ranges::any_of(kMarks, [&](std::string_view mark) { return equal_in_any_case(field, mark); });
}

bool split_fields(std::string_view line, Delimiter delimiter, std::vector<std::string_view>& fields) {
  fields.clear();
  const auto is_space = [&](char c) { return is_blank(c) && c != delimiter.separator; };
  while (true) {
    while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    std::size_t end = 0;
    const bool is_quoted = line.starts_with('"');
    if (is_quoted) {
      end = line.find('"', 1);
      while (end != std::string_view::npos && line.substr(end + 1).starts_with('"'))
        end = line.find('"', end + 2);
      if (end == std::string_view::npos) return false;
    }
    const std::size_t stop = std::min(line.find(delimiter.separator, end), line.size());
    std::string_view field = line.substr(0, stop);
    while (!field.empty() && is_space(field.back())) field.remove_suffix(1);
    if (is_quoted) {
      if (field.size() != end + 1) return false;
      field = trim(field.substr(1, end - 1));
    }
    fields.push_back(field);
    if (stop == line.size()) return true;
    line.remove_prefix(stop + 1);
  }
}

constexpr std::string_view kSeparators = ",;\t|";

std::optional<char> named_separator(std::string_view line) {
  constexpr std::string_view kStart = "sep=";
  if (line.starts_with('"') && line.ends_with('"') && line.size() > 2) line = line.substr(1, line.size() - 2);
  if (line.size() != kStart.size() + 1 || !equal_in_any_case(line.substr(0, kStart.size()), kStart) ||
      kSeparators.find(line.back()) == std::string_view::npos)
    return std::nullopt;
  return line.back();
}

Delimiter find_delimiter(std::span<const std::string> lines, std::optional<char> named) {
  struct Score {
    std::size_t lines = 0, numbers = 0, fields = 1;
    auto operator<=>(const Score&) const = default;
  };
  Delimiter best;
  Score highest;
  std::vector<std::string_view> fields;
  if (named) best.separator = *named;
  for (const char separator : kSeparators) {
    if (named && separator != *named) continue;
    std::map<std::size_t, Score> by_width;
    for (const std::string& line : lines) {
      if (!split_fields(line, Delimiter{.separator = separator}, fields) || fields.size() < 2) continue;
      Score& score = by_width[fields.size()];
      score.lines += 1;
      score.fields = fields.size();
      // "1,5;2,5" has as many fields between commas, but "5;2" is not a number.
      for (const std::string_view field : fields)
        score.numbers +=
            parse_field_number(field, Delimiter{.separator = separator}) || is_missing_number(field) ? 1 : 0;
    }
    for (const auto& [width, score] : by_width) {
      if (score <= highest) continue;
      highest = score;
      best.separator = separator;
    }
  }
  if (!best.allows_decimal_commas()) return best;
  for (const std::string& line : lines) {
    if (!split_fields(line, best, fields) || fields.size() != highest.fields) continue;
    best.has_decimal_commas =
        best.has_decimal_commas || std::ranges::any_of(fields, [&](std::string_view field) {
          return field.find(',') != std::string_view::npos && parse_field_number(field, best);
        });
  }
  return best;
}

std::optional<double> parse_field_number(std::string_view field, Delimiter delimiter) {
  if (!delimiter.has_decimal_commas) {
    if (const auto number = parse_number(field)) return number;
    if (!delimiter.allows_decimal_commas()) return std::nullopt;
  }
  const std::size_t comma = std::min(field.find(','), field.size());
  const std::string_view whole = field.substr(0, comma);
  const std::size_t point = whole.find('.');
  if (comma == field.size() && point == std::string_view::npos) return parse_number(field);
  if (point != std::string_view::npos && !is_grouped(whole, '.')) return std::nullopt;
  std::string text;
  for (const char c : whole)
    if (c != '.') text += c;
  if (comma < field.size()) {
    const std::string_view fraction = field.substr(comma + 1);
    if (fraction.find_first_of(",.") != std::string_view::npos) return std::nullopt;
    text.append(".").append(fraction);
  }
  return parse_number(text);
}

bool has_only_numbers(std::string_view line, Delimiter delimiter, std::size_t fields) {
  const char separator = delimiter.separator, comma = delimiter.allows_decimal_commas() ? ',' : separator;
  // Without branches, so that the compiler can look at many bytes at once.
  const auto is_digit = [](char c) { return static_cast<unsigned char>(c - '0') <= 9; };
  unsigned char odd = 0;
  unsigned separators = 0;
  const char* const text = line.data();
  for (std::size_t i = 1; i < line.size(); ++i) {
    const char c = text[i], before = text[i - 1];
    const bool ends = c == separator, is_exponent = (c | 0x20) == 'e', is_sign = c == '-' || c == '+';
    const bool known = is_digit(c) | ends | is_exponent | is_sign | (c == '.') | (c == comma);
    const bool follows_digit = is_digit(before);
    odd |= static_cast<unsigned char>(static_cast<int>(!known) | ((ends | is_exponent) & !follows_digit) |
                                      (is_sign & follows_digit));
    separators += ends;
  }
  if (line.empty() || !is_digit(line.back())) return false;
  const bool starts = is_digit(line[0]) || line[0] == '-' || line[0] == '+' || line[0] == '.';
  return starts && odd == 0 && separators + 1 == fields;
}

bool has_thousands_commas(std::string_view field) {
  const std::string_view whole = field.substr(0, field.find('.'));
  if (whole.find(',') == std::string_view::npos || !is_grouped(whole, ',')) return false;
  return whole.size() == field.size() || parse_number(std::string("0").append(field.substr(whole.size())));
}

bool is_several_numbers(std::string_view field) {
  std::size_t numbers = 0;
  while (!field.empty()) {
    const std::size_t end = std::min(field.find_first_of(" \t"), field.size());
    if (!parse_number(field.substr(0, end))) return false;
    ++numbers;
    field = trim(field.substr(end));
  }
  return numbers > 1;
}

}  // namespace gradwire
