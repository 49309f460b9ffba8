#include "gradwire/sweep.h"

#include <atomic>
#include <span>
#include <utility>

#include "api/content.h"
#include "base/value.h"
#include "experiments/cli/sweep/sweep.h"

namespace gradwire {
namespace {

// Returns the experiment with a [sweep] of the grid.
std::string text_of(const Experiment& experiment, const Grid& grid) {
  std::string text = experiment.toml() + "\n[sweep]\n";
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

SweepResult run(const SweepPlan& plan, const SweepOptions& options) {
  SweepRequest request;
  request.out = options.out;
  request.jobs = options.jobs;
  request.fresh = options.fresh;
  request.quiet = true;
  if (options.log) request.log = [&](const LogLine& line) { options.log(line.text); };
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

}  // namespace

SweepResult sweep(const Experiment& experiment, const Grid& grid, const SweepOptions& options) {
  const std::filesystem::path& file = experiment.content().loaded.file;
  return with_errors_of_keys([&] { return run(plan_sweep(text_of(experiment, grid), file, {}), options); },
                             file.string());
}

SweepResult sweep(const std::filesystem::path& file, const SweepOptions& options) {
  return run(read_sweep(file, {}), options);
}

}  // namespace gradwire
