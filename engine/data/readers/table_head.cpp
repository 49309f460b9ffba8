#include "engine/data/readers/table_head.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text_lines.h"
#include "base/word_list.h"
#include "engine/data/readers/lines.h"

namespace gradwire {
namespace {

constexpr auto kLabelNames = std::to_array<std::string_view>({"label", "class", "target", "y"});
constexpr std::size_t kHeadLines = 64, kHeadBytes = 1 << 20;

bool is_label_name(std::string_view field) {
  return std::ranges::any_of(kLabelNames,
                             [&](std::string_view name) { return equal_in_any_case(field, name); });
}

bool counts_up(const std::vector<double>& numbers, double first) {
  return std::ranges::all_of(numbers, [&](double number) { return number == first++; });
}

// Returns true if the numbers of a first line that also has words are names of columns.
bool are_names(const Fields& fields, const std::vector<double>& numbers) {
  if (counts_up(numbers, 0) || counts_up(numbers, 1)) return true;
  return std::ranges::any_of(fields, is_label_name) &&
         std::ranges::all_of(numbers, [](double x) { return x >= 0 && x == std::floor(x); }) &&
         std::ranges::adjacent_find(numbers, std::greater_equal()) == numbers.end();
}

std::optional<std::size_t> whole_number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Returns a field of a header without doubled quotes.
std::string without_doubled_quotes(std::string_view field) {
  std::string text;
  for (std::size_t i = 0; i < field.size(); ++i) {
    text += field[i];
    if (field.substr(i).starts_with("\"\"")) ++i;
  }
  return text;
}

// Returns true if pandas or R writes such a name for a column without one.
bool is_unnamed(std::string_view name) { return name.empty() || name.starts_with("Unnamed:"); }

std::string blanks_hint(std::string_view line) {
  if (line.find(' ') == std::string_view::npos) return "";
  return "; its fields seem to be separated by blanks: save it with commas between fields";
}

}  // namespace

TableHead::TableHead(const EachLine& each_line, const std::string& file, const TableOptions& options)
    : file_(file), options_(options) {
  std::size_t bytes = 0;
  std::optional<char> separator;
  each_line([&](std::string_view line, std::size_t number) {
    if (lines_.empty() && separator_line_ == 0 && (separator = named_separator(line))) {
      separator_line_ = number;
      return true;
    }
    lines_.emplace_back(line);
    if (lines_.size() == 1) first_line_ = number;
    bytes += line.size();
    return lines_.size() < kHeadLines && bytes < kHeadBytes;
  });
  if (lines_.empty()) return;
  delimiter_ = find_delimiter(lines_, separator);
  choose_header();
  choose_label();
  choose_features();
  leave_out_unnamed();
}

std::string TableHead::described(std::size_t column) const {
  return "column " + std::to_string(column + 1) +
         (names_[column].empty() ? "" : ", " + gradwire::quoted(names_[column]));
}

bool TableHead::has_texts() const {
  const auto has_text = [&](std::size_t i) {
    std::size_t numbers = 0;
    for (const Fields& row : rows_) {
      const bool is_number = parse_field_number(row[i], delimiter_).has_value();
      numbers += is_number ? 1 : 0;
      if (!is_number && !is_missing_value(row[i])) return true;
    }
    return numbers == 0 && !rows_.empty();
  };
  return (options_.to_predict == 0 && has_text(label_)) || std::ranges::any_of(features_, has_text);
}

void TableHead::split(std::string_view line, std::size_t number, Fields& fields) const {
  if (!split_fields(line, delimiter_, fields))
    throw error(number,
                "a quote is not closed at the end of its field; correct the field: line breaks in "
                "quotes are not read");
  if (width_ == 0 || fields.size() == width_) return;
  throw error(number, std::to_string(fields.size()) + " fields, but the first line has " +
                          std::to_string(width_) + "; all lines need the same number" +
                          (has_header_ && rows_.empty() && fields.size() == width_ + 1
                               ? ": R leaves out the name of the row names; write with row.names = FALSE"
                               : ""));
}

// ---- the header ----

void TableHead::choose_header() {
  Fields first;
  split(lines_[0], first_line_, first);
  if (first.size() < (options_.to_predict > 0 ? 1 : 2))
    throw error(first_line_, "one field; expected features and a label" + blanks_hint(lines_[0]));
  for (std::size_t k = 1; k < lines_.size(); ++k) {
    Fields fields;
    if (split_fields(lines_[k], delimiter_, fields)) rows_.push_back(std::move(fields));
  }
  has_header_ = is_header(first);
  width_ = first.size();
  // Some programs end the header with a separator, but not the lines.
  const auto are_shorter = [&](const Fields& fields) { return fields.size() + 1 == width_; };
  if (has_header_ && width_ > 2 && first.back().empty() && !rows_.empty() &&
      std::ranges::all_of(rows_, are_shorter)) {
    first.pop_back();
    --width_;
  }
  std::erase_if(rows_, [&](const Fields& fields) { return fields.size() != width_; });
  if (!has_header_) rows_.insert(rows_.begin(), first);
  for (const std::string_view field : first)
    names_.push_back(has_header_ ? without_doubled_quotes(field) : "");
  ends_with_separator_ = width_ > 2 && names_.back().empty() && is_empty(width_ - 1);
}

bool TableHead::is_header(const Fields& first) {
  std::vector<double> numbers;
  std::size_t missing = 0;
  for (const std::string_view field : first) {
    if (is_several_numbers(field)) return false;
    const auto number = parse_field_number(field, delimiter_);
    if (number) numbers.push_back(*number);
    missing += !number && is_missing_number(field) ? 1 : 0;
  }
  if (numbers.size() == first.size()) {
    if (first.size() > 2 && counts_up(numbers, 0))
      warnings_.push_back(file_ + ":" + std::to_string(first_line_) +
                          ": the first line counts up from 0, like column names of pandas; it is read as a "
                          "sample: remove it if it is a header");
    return false;
  }
  if (numbers.empty() && missing == first.size()) return false;
  if (!numbers.empty()) return missing <= (first[0].empty() ? 1u : 0u) && are_names(first, numbers);
  bool is_ambiguous = true;
  for (const Fields& fields : rows_) {
    for (std::size_t i = 0; i < std::min(first.size(), fields.size()); ++i) {
      if (parse_field_number(fields[i], delimiter_)) is_ambiguous = false;
      // A name that returns below is a value.
      if (fields[i] == first[i] && !is_missing_value(first[i])) return false;
    }
  }
  if (is_ambiguous && !rows_.empty() && std::ranges::none_of(first, is_label_name))
    warn("the first line is taken as a header, because its texts do not appear again");
  return true;
}

// Returns true if the values of a column are different, and are whole numbers or texts.
bool TableHead::names_lines(std::size_t column) const {
  std::vector<std::string_view> values;
  for (const Fields& row : rows_) {
    const auto number = parse_field_number(row[column], delimiter_);
    if (row[column].empty() || (number && *number != std::floor(*number))) return false;
    values.push_back(row[column]);
  }
  std::ranges::sort(values);
  return std::ranges::adjacent_find(values) == values.end();
}

bool TableHead::is_empty(std::size_t column) const {
  return std::ranges::all_of(rows_, [&](const Fields& row) { return row[column].empty(); });
}

// ---- the choice of columns ----

std::optional<std::size_t> TableHead::find(std::string_view column) const {
  for (std::size_t i = 0; i < width_; ++i)
    if (!names_[i].empty() && names_[i] == column) return i;
  for (std::size_t i = 0; i < width_; ++i)
    if (!names_[i].empty() && equal_in_any_case(names_[i], column)) return i;
  const auto number = whole_number(column);
  if (number && *number >= 1 && *number <= width_) return *number - 1;
  return std::nullopt;
}

std::size_t TableHead::find_or_throw(std::string_view column, const char* key) const {
  if (const auto found = find(column)) return *found;
  throw DataError(std::string(key) + ": " + file_ + " has no column " + gradwire::quoted(column) +
                  "; it has " + std::to_string(width_) + " columns" +
                  (has_header_ ? ": " + some_of(names_) : ", without names"));
}

// Chooses the column of the label in a table to predict, which may lack it.
void TableHead::choose_unread_label() {
  label_ = width_;
  if (!options_.columns.empty()) return;
  const std::size_t unused = (has_header_ && is_unnamed(names_[0]) ? 1 : 0) + (ends_with_separator_ ? 1 : 0);
  const bool has_one_more = width_ > options_.to_predict + unused;
  if (!options_.label.empty()) {
    const auto found = find(options_.label);
    if (found && (has_one_more || !whole_number(options_.label))) label_ = *found;
    return;
  }
  for (std::size_t i = 0; i < width_; ++i)
    if (label_ == width_ && is_label_name(names_[i])) label_ = i;
  if (label_ == width_ && has_one_more) label_ = width_ - (ends_with_separator_ ? 2 : 1);
}

void TableHead::choose_label() {
  if (options_.to_predict > 0) {
    choose_unread_label();
    return;
  }
  label_ = width_ - (ends_with_separator_ ? 2 : 1);
  if (!options_.label.empty()) {
    label_ = find_or_throw(options_.label, "problem.label");
    return;
  }
  if (!has_header_) return;
  std::vector<std::size_t> found;
  for (const std::string_view label : kLabelNames)
    for (std::size_t i = 0; i < width_; ++i)
      if (equal_in_any_case(names_[i], label)) found.push_back(i);
  if (found.empty()) {
    warn("the label is the last one, " + described(label_) +
         ": no column of the header is named label, class, target or y; problem.label names another one");
    return;
  }
  if (found.size() > 1) {
    warn("the label is " + described(found[0]) + ", though the header names " + described(found[1]) +
         " as well");
  } else if (found[0] != label_) {
    warn("the label is " + described(found[0]) + ", as the header says");
  }
  label_ = found[0];
}

void TableHead::choose_features() {
  const std::string key = "problem.columns = " + gradwire::quoted(options_.columns);
  if (options_.columns.empty()) {
    for (std::size_t i = 0; i < width_; ++i)
      if (i != label_) features_.push_back(i);
  } else {
    std::string_view rest = options_.columns;
    for (bool more = true; more;) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      add_features(trim(rest.substr(0, comma)));
      more = comma < rest.size();
      if (more) rest.remove_prefix(comma + 1);
    }
    std::ranges::sort(features_);
    if (std::ranges::adjacent_find(features_) != features_.end())
      throw DataError(key + ": a column is named twice");
    if (std::ranges::binary_search(features_, label_))
      throw DataError(key + ": " + described(label_) +
                      " is the label; leave it out, or name another one with problem.label");
  }
}

void TableHead::add_features(std::string_view token) {
  const std::size_t dash = std::min(token.find('-'), token.size());
  const std::size_t first = whole_number(trim(token.substr(0, dash))).value_or(0);
  const std::size_t last = dash < token.size() ? whole_number(trim(token.substr(dash + 1))).value_or(0) : 0;
  if (!find(token) && first >= 1 && first <= last && last <= width_) {
    for (std::size_t i = first; i <= last; ++i) features_.push_back(i - 1);
    return;
  }
  if (!find(token) && dash < token.size()) {
    const std::string range = "problem.columns: " + gradwire::quoted(token);
    if (first >= 1 && last >= 1)
      throw DataError(range + (first > last ? " is an empty range; write the smaller number first"
                                            : ": column " + std::to_string(last) + " is beyond the " +
                                                  std::to_string(width_) + " columns of " + file_));
    if (find(trim(token.substr(0, dash))) && find(trim(token.substr(dash + 1))))
      throw DataError(range +
                      ": a range needs numbers: " + std::to_string(*find(trim(token.substr(0, dash))) + 1) +
                      "-" + std::to_string(*find(trim(token.substr(dash + 1))) + 1));
  }
  features_.push_back(find_or_throw(token, "problem.columns"));
}

// Leaves out names of lines, and the empty column after a separator at the end of each line.
void TableHead::leave_out_unnamed() {
  if (!options_.columns.empty()) return;
  if (has_header_ && is_unnamed(names_[0]) && label_ != 0) {
    if (!names_lines(0))
      throw error(
          first_line_,
          "the first column has no name, like the row numbers that pandas and R write; remove the column "
          "(pandas: index=False), name it, or name the features in problem.columns");
    warn(
        "the first column has no name and counts or names the lines, as pandas and R write it; it is left "
        "out");
    std::erase(features_, 0u);
  }
  if (ends_with_separator_ && label_ != width_ - 1) {
    warn("the last column is empty; it is left out");
    std::erase(features_, width_ - 1);
  }
  if (features_.empty()) throw DataError(file_ + ": has no column for a feature next to the label");
}

void TableHead::warn(const std::string& what) { warnings_.push_back(file_ + ": " + what); }

DataError TableHead::error(std::size_t line, const std::string& what) const {
  return error_at(file_, line, what);
}

}  // namespace gradwire
