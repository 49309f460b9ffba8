// The fields of a line of a delimited text file: comma-, semicolon-, tab- or bar-separated.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

struct Delimiter {
  char separator = ',';
  // The first lines have numbers with a decimal comma. Points in numbers then divide thousands, as
  // in 1.234,5.
  bool has_decimal_commas = false;

  // Decimal commas are allowed if the separator is a semicolon or a tab.
  bool allows_decimal_commas() const { return separator == ';' || separator == '\t'; }
};

// Returns the separator that divides most of the lines into the same number of fields, at least two. Returns
// a comma if none does. If `named` is given, it is the separator.
Delimiter find_delimiter(std::span<const std::string> lines, std::optional<char> named = std::nullopt);

// Returns the separator in a line like sep=; that Excel puts before a table, or nullopt.
std::optional<char> named_separator(std::string_view line);

// Splits a line into fields, without quotes and surrounding blanks. The fields view the line. Returns false
// if a quote is not closed at the end of its field. A doubled quote in a quoted field stays doubled.
bool split_fields(std::string_view line, Delimiter delimiter, std::vector<std::string_view>& fields);

// Returns true if the line has `fields` fields, none in quotes, and each looks like a number. A line of texts
// like 2020-01-01 or of missing values does not.
bool has_only_numbers(std::string_view line, Delimiter delimiter, std::size_t fields);

// Parses the whole field as a number. "nan", "inf" and overflow give a result that is not finite. Returns
// nullopt if the field is not a number.
std::optional<double> parse_field_number(std::string_view field, Delimiter delimiter);

// Returns true for an empty field, for ?, and for the words that pandas takes as a missing value, such as NA.
bool is_missing_value(std::string_view field);
// Returns true also for marks that are missing only between numbers: -, a point, and such words in any case.
bool is_missing_number(std::string_view field);

// Returns true for a number with commas between its thousands, such as 1,234.5.
bool has_thousands_commas(std::string_view field);
// Returns true for several numbers with blanks between them.
bool is_several_numbers(std::string_view field);

bool equal_in_any_case(std::string_view a, std::string_view b);

}  // namespace gradwire
