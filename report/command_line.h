// Reads the command line of a program.
#pragma once

#include <optional>

#include "report/logger.h"

namespace CLI {
class App;
}

namespace gradwire {

// Parses the arguments. Returns nullopt if they are valid. Returns the exit code if the program has to end:
// after --help or --version, or after an error. Prints the error and the --help command to try.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv, Logger& logger);

}  // namespace gradwire
