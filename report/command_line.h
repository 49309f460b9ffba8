// Reads the command line of a program.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/logger.h"

namespace CLI {
class App;
}

namespace gradwire {

// Returns the key of an experiment that a word means, or nullopt.
using KeyOfWord = std::function<std::optional<std::string>(std::string_view)>;

// Parses the arguments. Returns nullopt if they are valid. Returns the exit code if the program has to end:
// after --help or --version, or after an error. Prints the error and the --help command to try. If the
// command has an option --set and no option --WORD, `--WORD VALUE` means `--set WORD=VALUE` for each WORD
// that `key_of` knows.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv, Logger& logger,
                                      const KeyOfWord& key_of = {});

// Returns "unknown command 'WORD'" and the nearest command, or all of them.
std::string unknown_command(std::string_view word, const std::vector<std::string>& known);

}  // namespace gradwire
