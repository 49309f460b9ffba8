// A value of a setting, whatever it was read from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gradwire {

// A value that no setting takes: a date, a table, a list of something else than integers.
struct OtherValue {
  std::string what;  // "a date"
  bool operator==(const OtherValue&) const = default;
};

using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, OtherValue>;

// As it is written in a TOML file; reading it gives the same value, bit for bit. REQUIRES: no OtherValue.
std::string toml_literal(const Value& value);

// For an error: the literal, shortened when it is long.
std::string describe(const Value& value);

// The shortest decimal that reads back to the same double (at most 17 significant digits).
std::string number_text(double value);
// Rounded to so many significant digits, for people.
std::string rounded_text(double value, int digits);

// Scalars that are kept as text. value_of() turns a text that is exactly the spelling of a bool or a number
// into that bool or number, so that it needs no quotes in the file: text_of(value_of(text)) == text for every
// text.
std::string text_of(const Value& scalar);
Value value_of(std::string_view text);

// A number is spelled as number_text() does; everything else stays as it is.
std::string canonical_text(std::string_view text);

}  // namespace gradwire
