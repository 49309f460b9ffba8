// The commands of `gradwire` around an experiment file: optimum.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/logger.h"

namespace CLI {
class App;
}

namespace gradwire {

struct ExperimentArguments {
  std::string file;
  std::vector<std::string> sets;
  bool json = false;
};

// Adds the commands to `app`. `a` must outlive the parsing.
void add_experiment_commands(CLI::App& app, ExperimentArguments& a);
// Returns the exit code, or nullopt if the user gave another command. Throws the errors of the commands.
std::optional<int> run_experiment_command(const CLI::App& app, const ExperimentArguments& a, Logger& logger);

}  // namespace gradwire
