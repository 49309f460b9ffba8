#include "gradwire/sweep.h"

#include <atomic>
#include <span>
#include <utility>

#include "api/content.h"
#include "api/program_parts.h"
#include "base/value.h"
#include "experiments/cli/sweep/sweep.h"

namespace gradwire {
namespace {

// Returns the experiment with a [sweep] of the grid.
std::string text_of(const Experiment& experiment, const Grid& grid, const SweepOptions& options) {
  std::string text = experiment.toml() + "\n[sweep]\n";
  if (!options.criterion.empty()) text += "criterion = " + toml_literal(options.criterion) + "\n";
  if (!options.budget.empty()) text += "budget = " + toml_literal(options.budget) + "\n";
  if (options.target) text += "target = " + number_text(*options.target) + "\n";
  if (!options.tune.empty()) {
    text += "tune = [";
    for (const std::string& key : options.tune) text += toml_literal(key) + ", ";
    text += "]\n";
  }
  for (const auto& [key, values] : grid) {
    text += key + " = [";
    for (const KeyValue& value : values) {
      const bool is_toml = read_toml_value(value.text()).has_value();
      text += (is_toml ? value.text() : toml_literal(value.text())) + ", ";
    }
    text += "]\n";
  }
  return text;
}

SweepResult run(const SweepPlan& plan, const SweepOptions& options, bool is_of_program,
                Functions functions = {}) {
  const ProgramParts parts(options);
  SweepRequest request;
  request.out = options.out;
  // An oracle works for one run at a time, which then may have all threads.
  const bool has_functions = functions.fp32 != nullptr || functions.fp64 != nullptr;
  request.jobs = has_functions ? 1 : options.jobs;
  request.threads = has_functions ? options.jobs : 1;
  request.is_of_program = is_of_program;
  request.program = parts.hash(functions, options.x0);
  request.brought = Brought{.functions = std::move(functions),
                            .reading = parts.reading(),
                            .x0 = options.x0,
                            .smoothness = options.smoothness};
  request.complete = [&](LoadedExperiment& loaded) { parts.add_to(loaded); };
  request.fresh = options.fresh;
  if (options.log) request.log = [&](const LogLine& line) { options.log(line.text); };
  request.on_run = options.on_run;
  std::atomic<bool> stop{false};
  const std::stop_callback on_stop(options.stop, [&] { stop = true; });
  SweepReport report = run_sweep(plan, request, stop);
  SweepResult result{.folder = report.folder,
                     .table = std::move(report.table),
                     .failed = std::move(report.failed),
                     .stopped = report.stopped};
  for (const RunOfSweep& run : plan.runs) {
    SweptRun swept{.folder = folder_of_run(report.folder, run), .values = {}};
    for (const std::string& key : plan.varied) swept.values.emplace_back(key, setting(run, key));
    result.runs.push_back(std::move(swept));
  }
  for (BestOf& best : report.best)
    result.best.push_back({.algorithm = std::move(best.compared),
                           .tuned = std::move(best.tuned),
                           .median = best.median,
                           .low = best.low,
                           .high = best.high,
                           .runs = std::move(best.runs)});
  return result;
}

SweepResult run_grid(const Experiment& asked, const Grid& grid, const SweepOptions& options,
                     Functions functions) {
  const Experiment experiment = asked.with(ProgramParts(options).keys());
  check_smoothness(options.smoothness, functions, experiment);
  const std::filesystem::path& file = experiment.content().loaded.file;
  return with_errors_of_keys(
      [&] {
        return run(plan_sweep(text_of(experiment, grid, options), file, {}), options, true,
                   std::move(functions));
      },
      file.string());
}

}  // namespace

SweepResult sweep(const Experiment& experiment, const Grid& grid, const SweepOptions& options) {
  return run_grid(experiment, grid, options, {});
}

SweepResult sweep(const Oracles& oracles, const Experiment& experiment, const Grid& grid,
                  const SweepOptions& options) {
  return run_grid(experiment, grid, options, functions_of(oracles));
}

SweepResult sweep(const std::filesystem::path& file, const SweepOptions& options) {
  return run(read_sweep(file, {}), options, false);
}

}  // namespace gradwire
