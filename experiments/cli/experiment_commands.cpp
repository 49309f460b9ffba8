#include "experiments/cli/experiment_commands.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "experiments/cli/run/optimum.h"

namespace gradwire {
namespace {

void add_file(CLI::App& command, ExperimentArguments& a) {
  command.add_option("FILE", a.file, "The experiment, a TOML file")->type_name("")->required();
  command.add_option("--set", a.sets, "Override a key, as for run")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
}

void add_optimum(CLI::App& app, ExperimentArguments& a) {
  CLI::App* optimum = app.add_subcommand(
      "optimum", "Compute f*, the constants of a problem, and theory's step size of every algorithm");
  add_file(*optimum, a);
  optimum->add_flag("--json", a.json, "Print one JSON object");
  optimum->footer(
      R"(Each algorithm has the compressor of the experiment if it takes that, else randk or topk with as many numbers.
An experiment without compressor gets 1 % of the numbers. f* is kept for plots and for the last line of runs.

Examples:
  gradwire optimum experiments/configs/quadratics.toml
  gradwire optimum FILE.toml --set algorithm.compressor=randk:k=5 --json
)");
}

}  // namespace

void add_experiment_commands(CLI::App& app, ExperimentArguments& a) { add_optimum(app, a); }

std::optional<int> run_experiment_command(const CLI::App& app, const ExperimentArguments& a, Logger& logger) {
  if (app.got_subcommand("optimum")) {
    const OptimumReport report =
        report_optimum(a.file, a.sets, [&](const LogLine& line) { logger.log(line); });
    std::cout << (a.json ? optimum_json(report) : optimum_text(report));
    return 0;
  }
  return std::nullopt;
}

}  // namespace gradwire
