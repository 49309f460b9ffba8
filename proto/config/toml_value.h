// A value of the experiment file, apart from any TOML library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gradwire {

// A value that no key takes: a date, a table, a list of something else than integers.
struct TomlOther {
  std::string what;  // "a date"
  bool operator==(const TomlOther&) const = default;
};

using TomlValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, TomlOther>;

// As it is written in a TOML file; reading it gives the same value, bit for bit. REQUIRES: no TomlOther.
std::string toml_literal(const TomlValue& value);

// For an error: the literal, shortened when it is long.
std::string describe(const TomlValue& value);

// The shortest decimal that reads back to the same double (at most 17 significant digits).
std::string number_text(double value);

// Scalars that are kept as text. value_of() turns a text that is exactly the spelling of a bool or a number
// into that bool or number, so that it needs no quotes in the file: text_of(value_of(text)) == text for every
// text.
std::string text_of(const TomlValue& scalar);
TomlValue value_of(std::string_view text);

// A number is spelled as number_text() does; everything else stays as it is.
std::string canonical_text(std::string_view text);

}  // namespace gradwire
