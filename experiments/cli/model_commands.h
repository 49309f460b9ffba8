// The commands of `gradwire` for models that a run has left: evaluate, export.
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
  std::string model, file, out;
  std::vector<std::string> sets;
  unsigned threads = 0;
  bool json = false;
};

// `a` must outlive the parsing of `app`.
void add_model_commands(CLI::App& app, ModelArguments& a);
// The exit code; nothing where another command was given. Throws as the commands do.
std::optional<int> run_model_command(const CLI::App& app, const ModelArguments& a,
                                     const std::atomic<bool>& stop, const Log& log);

}  // namespace gradwire
