// gradwire data list, gradwire data fetch NAME...
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace gradwire {

struct DataArguments {
  std::vector<std::string> names;
  std::string mirror;
  bool quiet = false;
};

// Adds the commands to `app`. `a` must outlive the parsing.
void add_data_command(CLI::App& app, DataArguments& a);
// Returns the exit code. Throws UsageError, std::runtime_error (one line).
int run_data_command(const CLI::App& app, const DataArguments& a, const std::atomic<bool>& stop);

}  // namespace gradwire
