#include "experiments/cli/run/finished_run.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/value.h"
#include "plotting/plot.h"
#include "report/metrics_reader.h"
#include "report/preprocessing_file.h"
#include "storage/atomic_file.h"
#include "storage/model_file.h"

namespace gradwire {
namespace fs = std::filesystem;

std::string transport_name(TransportKind kind) {
  switch (kind) {
    case TransportKind::kMemory: return "memory";
    case TransportKind::kEncoded: return "encoded";
    case TransportKind::kTcp: return "tcp";
    case TransportKind::kTls: return "tls";
  }
  return "";
}

std::string stuck_accuracy(const fs::path& metrics) {
  constexpr std::size_t kFewRows = 5;
  std::vector<double> all;
  for (const RoundRecord& record : read_metrics(metrics))
    if (record.accuracy) all.push_back(*record.accuracy);
  if (all.size() < kFewRows || all.front() == 1 ||
      std::any_of(all.begin(), all.end(), [&](double a) { return a != all.front(); }))
    return "";
  return "the accuracy is " + rounded_text(all.front(), 4) +
         " in every row, as if one label were always predicted; try problem.normalize = \"standard\", "
         "another step size, or another problem.label";
}

void write_text(const fs::path& file, const std::string& text) {
  const std::string_view bytes = text;
  throw_if_failed(disk_of(file)->write(file.filename().string(), std::span(&bytes, 1)));
}

std::string summary_text(const FinishedRun& run) {
  const RunPlan& plan = run.plan;
  const RunResult& result = run.result;
  Summary summary;
  summary.experiment = &plan.experiment;
  summary.asked = &plan.asked;
  summary.schema = &plan.schema;
  summary.theory = plan.theory();
  summary.transport = transport_name(run.transport);
  summary.kernels = result.kernels;
  summary.threads = run.threads;
  summary.warnings = plan.warnings;
  if (result.crossed) summary.warnings.push_back(result.monitor);
  summary.outcome = result.outcome;
  summary.rounds = result.rounds;
  summary.last = run.last;
  summary.loss_at_start = run.loss_at_start;
  summary.seconds = result.seconds;
  summary.evaluation_seconds = result.evaluation_seconds;
  summary.processes = result.processes;
  summary.energy = run.energy;
  return summary_json(summary);
}

void write_results(const fs::path& folder, const FinishedRun& run, bool figure) {
  const RunPlan& plan = run.plan;
  const RunResult& result = run.result;
  write_text(folder / "config.toml", to_toml(plan.experiment));
  if (plan.experiment.precision == Precision::kFp32) {
    const std::vector<float> x(result.model.begin(), result.model.end());
    write_model<float>(folder / "model.bin", x);
  } else {
    write_model<double>(folder / "model.bin", result.model);
  }
  if (const std::string text = preprocessing_json(plan.experiment, run.preprocessing); !text.empty())
    write_text(folder / kPreprocessingFile, text);
  write_text(folder / "summary.json", summary_text(run));
  // A run without evaluations, or one that diverged before the first, has nothing to plot.
  if (plan.experiment.run.evaluate_every == 0 || !run.last || !figure) return;
  plot_command({.folders = {folder}});
}

std::string trouble_of(const FinishedRun& run, const fs::path& folder, bool can_resume) {
  const std::string name = run.plan.experiment.name;
  const std::string at = "round " + std::to_string(run.result.rounds);
  const bool before_steps = run.result.rounds == 0 && run.plan.experiment.server.norm_limit == 0;
  if (run.result.outcome == Outcome::kDiverged && before_steps)
    return name + ": diverged at " + at +
           ": a loss or a gradient is not finite before the first step; check the functions, the data and "
           "the start point (run.x0)";
  if (run.result.outcome == Outcome::kDiverged)
    return name + ": diverged at " + at + ": " + divergence(run.plan.experiment, run.plan.theory());
  if (run.result.outcome != Outcome::kStopped) return "";
  const std::string stopped =
      name + ": stopped after " + at + " of " + std::to_string(run.plan.experiment.run.rounds);
  if (can_resume) return stopped + "; to continue, run the same command again";
  if (folder.empty()) return stopped + "; to continue from this model, start another run at it (x0)";
  return stopped +
         "; to continue from this model, run again with --set run.x0=file:" + (folder / "model.bin").string();
}

}  // namespace gradwire
