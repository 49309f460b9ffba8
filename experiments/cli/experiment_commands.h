// The commands of `gradwire` around an experiment file: optimum, compare, new.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "experiments/cli/sweep/compare.h"
#include "report/logger.h"

namespace CLI {
class App;
}

namespace gradwire {

struct ExperimentArguments {
  std::string file, out, figure, name, data, label;
  std::vector<std::string> sets;
  bool json = false;
  CompareRequest compare;
};

// Adds the commands to `app`. `a` must outlive the parsing.
void add_experiment_commands(CLI::App& app, ExperimentArguments& a);
// Returns the exit code, or nullopt if the user gave another command. Throws the errors of the commands.
std::optional<int> run_experiment_command(const CLI::App& app, const ExperimentArguments& a,
                                          const std::atomic<bool>& stop, Logger& logger);

}  // namespace gradwire
