// TOML text to a flat list of keys with their lines. The only user of the TOML library.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/value.h"

namespace gradwire {

// The text is not TOML. what() is one line without a place; toml++ also refuses repeated keys and sections.
class TomlError : public std::runtime_error {
 public:
  TomlError(std::uint32_t line, const std::string& message) : std::runtime_error(message), line_(line) {}
  std::uint32_t line() const { return line_; }

 private:
  std::uint32_t line_;
};

// One key with its value, or the header of a section.
struct TomlEntry {
  std::string section;  // empty: the key stands before the first section
  std::string key;
  bool is_header = false;  // no key, no value: [section]
  Value value;
  std::uint32_t line = 0;  // from 1
};

// In the order of the file. Sections are one level deep: what is nested deeper is a OtherValue. Throws
// TomlError.
std::vector<TomlEntry> read_toml(std::string_view text);

// One key of a table with the values it lists; one that lists none has a single value.
struct TomlChoice {
  std::string path;  // below its table, "algorithm.step_size"
  std::vector<Value> values;
  bool is_list = false;
  std::uint32_t line = 0;
};
using TomlChoices = std::vector<TomlChoice>;  // in the order of the file

// The keys below a section, however deep, and those of each table of its array `tables` (which the first list
// leaves out). Throws TomlError. REQUIRES: read_toml() accepts the text.
struct TomlSweep {
  TomlChoices keys;
  std::vector<TomlChoices> tables;
};
TomlSweep read_toml_sweep(std::string_view text, std::string_view section, std::string_view tables);

// One value as it would stand to the right of a "="; nothing when it is not TOML.
std::optional<Value> read_toml_value(std::string_view text);

}  // namespace gradwire
