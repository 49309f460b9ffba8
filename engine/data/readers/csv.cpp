#include "engine/data/readers/csv.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/data/readers/lines.h"

namespace gradwire {
namespace {

using CsvFields = std::vector<std::string_view>;

constexpr auto kLabelNames = std::to_array<std::string_view>({"label", "class", "target", "y"});

bool equal_in_any_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_one_of(std::string_view field, std::span<const std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return equal_in_any_case(field, word); });
}

// Returns true if the field marks a missing value.
bool is_missing(std::string_view field) {
  static constexpr auto kMarks =
      std::to_array<std::string_view>({"", "?", "-", ".", "na", "n/a", "nan", "null", "none"});
  return is_one_of(field, kMarks);
}

// Removes the first field and the comma after it from `line`. Sets `field` to it, without quotes and
// surrounding blanks. Returns false if a quote is not closed before the next comma or the end.
bool take_field(std::string_view& line, std::string_view& field) {
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  std::size_t end = 0;
  const bool is_quoted = line.starts_with('"');
  if (is_quoted) {
    end = line.find('"', 1);
    while (end != std::string_view::npos && line.substr(end + 1).starts_with('"'))
      end = line.find('"', end + 2);
    if (end == std::string_view::npos) return false;
  }
  const std::size_t comma = std::min(line.find(',', end), line.size());
  field = trim(line.substr(0, comma));
  line.remove_prefix(comma);
  if (!is_quoted) return true;
  if (field.size() != end + 1) return false;
  field = trim(field.substr(1, end - 1));
  return true;
}

// Returns a hint for an error if the fields seem to have a separator other than a comma, else "".
std::string separator_hint(std::string_view line) {
  const bool has_commas = line.find(',') != std::string_view::npos;
  for (const auto& [separator, name] :
       {std::pair{';', "semicolons"}, {'\t', "tabs"}, {'|', "bars"}, {' ', "blanks"}}) {
    if (line.find(separator) == std::string_view::npos || (separator == ' ' && has_commas)) continue;
    return std::string("; its fields seem to be separated by ") + name +
           ": save it with commas between fields, and decimal points";
  }
  return "";
}

class CsvParser {
 public:
  CsvParser(Lines& lines, const std::string& file, KeepRow keep)
      : lines_(lines), file_(file), keep_(std::move(keep)) {}

  Dataset parse() {
    while (const auto line = lines_.next()) {
      if (line->empty()) continue;
      line_ = *line;
      const bool is_first = expected_ == 0;
      if (!is_first && keep_ && !keep_(data_.rows()) && label_at_ + 1 == expected_) {
        add_label(last_field());
        data_.row_start.push_back(data_.column.size());
        continue;
      }
      split_fields();
      if (is_first && see_first_line()) continue;
      add_sample(!keep_ || keep_(data_.rows()));
    }
    if (data_.rows() == 0)
      throw DataError(file_ + ": holds no samples; each line is FEATURE,...,FEATURE,LABEL");
    data_.columns = expected_ - 1;
    return std::move(data_);
  }

 private:
  void split_fields() {
    fields_.clear();
    std::string_view rest = line_;
    for (bool more = true; more;) {
      std::string_view field;
      if (!take_field(rest, field))
        throw error("a quote is not closed at the end of its field; correct the field" +
                    separator_hint(line_));
      fields_.push_back(field);
      more = !rest.empty();
      if (more) rest.remove_prefix(1);
    }
    if (expected_ == 0) {
      expected_ = fields_.size();
      label_at_ = expected_ - 1;
    }
    if (expected_ < 2) throw error("one field; expected features and a label" + separator_hint(line_));
    if (fields_.size() != expected_)
      throw error(std::to_string(fields_.size()) + " fields, but the first line has " +
                  std::to_string(expected_) + "; all lines need the same number" + separator_hint(line_));
  }

  // Returns whether the first line is a header. If it is one, also chooses the column of the label.
  bool see_first_line() {
    std::vector<double> numbers;
    std::size_t missing = 0;
    for (const std::string_view field : fields_) {
      const auto number = parse_number(field);
      if (number) numbers.push_back(*number);
      missing += !number && is_missing(field) ? 1 : 0;
    }
    if (numbers.size() == fields_.size()) {
      if (fields_.size() > 2 && counts_up(numbers, 0))
        data_.warnings.push_back(file_ + ":" + std::to_string(lines_.number()) +
                                 ": the first line counts up from 0, like column names of pandas; it is "
                                 "read as a sample: remove it if it is a header");
      return false;
    }
    const bool is_unnamed = fields_[0].empty() || fields_[0].starts_with("Unnamed:");
    if (numbers.empty() && missing == fields_.size()) return false;
    if (!numbers.empty() && (missing > (fields_[0].empty() ? 1u : 0u) || !are_names(numbers))) return false;
    if (is_unnamed)
      throw error(
          "the first column has no name, like the row numbers that pandas and R write; remove the "
          "column (pandas: index=False), or name it");
    choose_label();
    return true;
  }

  static bool counts_up(const std::vector<double>& numbers, double first) {
    for (const double number : numbers)
      if (number != first++) return false;
    return true;
  }

  // Returns true if the numbers of the first line, which also has words, are names of columns.
  bool are_names(const std::vector<double>& numbers) const {
    if (!separator_hint(line_).empty()) return false;
    if (counts_up(numbers, 0) || counts_up(numbers, 1)) return true;
    return std::ranges::any_of(fields_, [](std::string_view f) { return is_one_of(f, kLabelNames); }) &&
           std::ranges::all_of(numbers, [](double x) { return x >= 0 && x == std::floor(x); }) &&
           std::ranges::adjacent_find(numbers, std::greater_equal()) == numbers.end();
  }

  void choose_label() {
    std::vector<std::size_t> found;
    for (const std::string_view name : kLabelNames)
      for (std::size_t i = 0; i < expected_; ++i)
        if (equal_in_any_case(fields_[i], name)) found.push_back(i);
    if (!found.empty()) label_at_ = found.front();
    const std::string column = "column " + std::to_string(label_at_ + 1) + ", " + quoted(fields_[label_at_]);
    if (found.empty())
      data_.warnings.push_back(file_ + ": the label is the last one, " + column +
                               ": no column of the header is named label, class, target or y");
    else if (found.size() > 1)
      data_.warnings.push_back(file_ + ": the label is " + column + ", though the header names column " +
                               std::to_string(found[1] + 1) + " " + quoted(fields_[found[1]]) + " as well");
    else if (label_at_ + 1 != expected_)
      data_.warnings.push_back(file_ + ": the label is " + column + ", as the header says");
  }

  // Returns the field after the last comma, which is the label of a row that is not kept.
  std::string_view last_field() const {
    std::string_view field = trim(line_.substr(line_.rfind(',') + 1));
    if (field.size() > 1 && field.front() == '"' && field.back() == '"')
      field = trim(field.substr(1, field.size() - 2));
    return field;
  }

  void add_label(std::string_view field) { data_.label.push_back(parse_field(field, label_at_)); }

  void add_sample(bool is_kept) {
    std::uint32_t column = 0;
    for (std::size_t i = 0; i < expected_; ++i) {
      if (i == label_at_) {
        add_label(fields_[i]);
        continue;
      }
      if (const double number = is_kept ? parse_field(fields_[i], i) : 0; number != 0) {
        data_.column.push_back(column);
        data_.value.push_back(number);
      }
      ++column;
    }
    data_.row_start.push_back(data_.column.size());
  }

  double parse_field(std::string_view field, std::size_t position) const {
    const auto number = parse_number(field);
    if (number && std::isfinite(*number)) return *number;
    throw error("field " + std::to_string(position + 1) + ", " + quoted(field) +
                (number ? ", is not finite; remove or replace it"
                        : ", is not a number; columns must be numeric" + separator_hint(field)));
  }

  DataError error(const std::string& what) const { return error_at(file_, lines_.number(), what); }

  Lines& lines_;
  const std::string& file_;
  const KeepRow keep_;
  std::string_view line_;
  CsvFields fields_;
  std::size_t expected_ = 0;  // fields per line; 0 before the first line
  std::size_t label_at_ = 0;
  Dataset data_;
};

}  // namespace

Dataset parse_csv(std::string_view text, const std::string& file) {
  Lines lines(text);
  return CsvParser(lines, file, {}).parse();
}

Dataset parse_csv(ByteStream& text, const std::string& file, const KeepRow& keep) {
  Lines lines(text);
  return CsvParser(lines, file, keep).parse();
}

}  // namespace gradwire
