// The commands of `gradwire` for the model of a run: evaluate, predict, export.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"

namespace CLI {
class App;
}

namespace gradwire {

struct ModelArguments {
  std::string model, file, data, out;
  std::vector<std::string> sets;
  unsigned threads = 0;
  bool json = false;
};

// Adds the commands to `app`. `a` must outlive the parsing.
void add_model_commands(CLI::App& app, ModelArguments& a);
// Returns the exit code, or nullopt if the user gave another command. Throws the errors of the commands.
std::optional<int> run_model_command(const CLI::App& app, const ModelArguments& a,
                                     const std::atomic<bool>& stop, const Log& log);

}  // namespace gradwire
