// The value of a setting, independent of where it was read from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gradwire {

// A value that no setting accepts: a date, a table, or a list that does not hold integers only.
struct OtherValue {
  std::string what;  // "a date"
  bool is_list = false;
  bool operator==(const OtherValue&) const = default;
};

using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, OtherValue>;

// Returns the value as TOML text that reads back bit for bit. REQUIRES: not an OtherValue.
std::string toml_literal(const Value& value);

// Returns the literal for an error message, shortened if it is long.
std::string describe(const Value& value);

// Returns the shortest decimal that reads back to the same double (at most 17 significant digits).
std::string number_text(double value);
// Does the same with less code, but more slowly. Programs that must be small use it as their number_text().
// The last digit of some powers of two differs.
std::string number_text_by_trial(double value);
// Returns the value rounded to `digits` significant digits, for people.
std::string rounded_text(double value, int digits);

// Convert scalars to and from text. value_of() returns a bool or a number if the text is exactly its
// spelling, so a file needs no quotes. text_of(value_of(text)) == text for every text.
std::string text_of(const Value& scalar);
Value value_of(std::string_view text);

// Returns a number as number_text() spells it, and any other text unchanged.
std::string canonical_text(std::string_view text);

}  // namespace gradwire
