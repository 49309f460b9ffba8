// Converts TOML text to a flat list of keys with their lines. The only user of the TOML library.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/value.h"

namespace gradwire {

// The error of text that is not TOML. what() is one line without file and line number. toml++ also rejects
// repeated keys and sections.
class TomlError : public std::runtime_error {
 public:
  TomlError(std::uint32_t line, const std::string& message) : std::runtime_error(message), line_(line) {}
  std::uint32_t line() const { return line_; }

 private:
  std::uint32_t line_;
};

// One key with its value, or the header of a section.
struct TomlEntry {
  std::string section;  // empty if the key comes before the first section
  std::string key;
  bool is_header = false;  // true for [section], which has no key and no value
  Value value;
  std::uint32_t line = 0;  // from 1
};

// Returns the entries in the order of the file. Sections are one level deep; a deeper value becomes an
// OtherValue. Throws TomlError.
std::vector<TomlEntry> read_toml(std::string_view text);

// One key of a table with the values that it lists. A key without a list has a single value.
struct TomlChoice {
  std::string path;  // relative to its table: "algorithm.step_size"
  std::vector<Value> values;
  bool is_list = false;
  std::uint32_t line = 0;
};
using TomlChoices = std::vector<TomlChoice>;  // in the order of the file

// The keys below a section at any depth, and the keys of each table of its array `tables`. `keys` does not
// include `tables`.
struct TomlSweep {
  TomlChoices keys;
  std::vector<TomlChoices> tables;
};
// Reads both. Throws TomlError. REQUIRES: read_toml() accepts the text.
TomlSweep read_toml_sweep(std::string_view text, std::string_view section, std::string_view tables);

// Reads one value, as on the right of a "=". Returns nullopt if it is not TOML.
std::optional<Value> read_toml_value(std::string_view text);

}  // namespace gradwire
