// The command line of a program that has a few options and no commands. The texts are those of
// parse_command_line(), so a user sees one style in all programs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/logger.h"

namespace gradwire {

struct OptionRow {
  std::string name;   // "--server"
  std::string value;  // "HOST:PORT", or "MS=5" with a default; empty for a flag
  std::string help;
  // Takes the value, or "" for a flag that is set. Returns what is wrong with it, or "".
  std::function<std::string(const std::string&)> take;
  bool required = false;
  std::string needs{};  // another option without which this one means nothing
};

struct OptionTable {
  std::string program, purpose, version, footer;
  std::vector<OptionRow> rows;
};

// Return a `take` that stores the value in a string or path, and one that sets a flag.
template <class Text>
std::function<std::string(const std::string&)> store_in(Text& text) {
  return [&text](const std::string& value) {
    text = value;
    return std::string();
  };
}
std::function<std::string(const std::string&)> set_flag(bool& flag);

std::string help_text(const OptionTable& table);

// Parses the arguments. Returns nullopt if they are valid. Returns the exit code if the program has to end:
// after --help or --version, or after an error, which it prints.
std::optional<int> parse_options(const OptionTable& table, int argc, char** argv, Logger& logger);

}  // namespace gradwire
