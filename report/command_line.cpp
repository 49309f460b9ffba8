#include "report/command_line.h"

#include <CLI/CLI.hpp>
#include <string>

namespace gradwire {

std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv, Logger& logger) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const auto commands = app.get_subcommands();
    const std::string command = commands.empty() ? "" : " " + commands.front()->get_name();
    return logger.fail(std::string(error.what()) + "; see " + app.get_name() + command + " --help",
                       kBadUsage);
  }
}

}  // namespace gradwire
