#include "experiments/run.h"

#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "experiments/plot/plot.h"
#include "experiments/simulate/checkpoint.h"
#include "experiments/simulate/prepare.h"
#include "experiments/support/results_dir.h"
#include "experiments/tcp_run.h"
#include "proto/config/experiment_file.h"
#include "proto/report/metrics_file.h"
#include "proto/store/model_file.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

const char* transport_name(TransportKind kind) {
  switch (kind) {
    case TransportKind::kMemory: return "memory";
    case TransportKind::kEncoded: return "encoded";
    case TransportKind::kTcp: return "tcp";
  }
  return "";
}

void check_request(const LoadedExperiment& loaded, const RunRequest& request) {
  const FaultsSection& f = loaded.experiment.faults;
  const bool faults = f.lost_replies > 0 || f.lost_requests > 0 || f.duplicates > 0 || f.crashes > 0 ||
                      f.wiped > 0 || f.shuffle;
  if (request.transport == TransportKind::kTcp && faults)
    throw UsageError(
        "--transport tcp: [faults] are made up in memory alone; use memory or encoded, or leave [faults] "
        "out");
  if (request.transport == TransportKind::kTcp && !loaded.experiment.clients.seconds.empty())
    throw UsageError(
        "--transport tcp: clients.seconds are virtual, and there clients take the time that they take; use "
        "memory or "
        "encoded, or leave it out");
  if (request.transport == TransportKind::kTcp && request.resume)
    throw UsageError(
        "--resume: runs over tcp cannot be resumed; leave --transport out, or start gradwire-server "
        "yourself, "
        "which resumes by itself");
}

void write_text(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size())).flush();
  if (!out) throw std::runtime_error(file.string() + ": cannot be written; is the disk full?");
}

void write_results(const fs::path& folder, const RunPlan& plan, const RunRequest& request, unsigned threads,
                   const RunResult& result, const MetricsFile& metrics) {
  write_text(folder / "config.toml", to_toml(plan.experiment));
  if (plan.experiment.precision == Precision::kFp32) {
    const std::vector<float> x(result.model.begin(), result.model.end());
    write_model<float>(folder / "model.bin", x);
  } else {
    write_model<double>(folder / "model.bin", result.model);
  }
  Summary summary;
  summary.experiment = &plan.experiment;
  summary.theory = plan.theory();
  summary.transport = transport_name(request.transport);
  summary.kernels = result.kernels;
  summary.threads = threads;
  summary.warnings = plan.warnings;
  summary.outcome = result.outcome;
  summary.rounds = result.rounds;
  summary.last = metrics.last();
  summary.loss_at_start = metrics.loss_at_start();
  summary.seconds = result.seconds;
  summary.processes = result.processes;
  write_text(folder / "summary.json", summary_json(summary));
  // A run without evaluations has nothing to plot.
  if (plan.experiment.run.evaluate_every == 0) return;
  const fs::path folders[] = {folder};
  write_figure(make_figure(load_curves(folders), nullptr, nullptr), folder / "plot.svg");
}

std::string trouble_of(const RunPlan& plan, const RunResult& result, const fs::path& folder,
                       bool can_resume) {
  const std::string name = plan.experiment.name;
  const std::string at = "round " + std::to_string(result.rounds);
  if (result.outcome == Outcome::kDiverged)
    return name + ": diverged at " + at +
           ": a loss or a gradient is not finite; try a smaller step (this was algorithm.step_size = " +
           plan.experiment.algorithm.step_size + ")";
  if (result.outcome == Outcome::kStopped)
    return name + ": stopped after " + at + " of " + std::to_string(plan.experiment.run.rounds) +
           (can_resume ? "; to go on, run it again with --resume"
                       : "; to go on from this model, run again with --set run.x0=file:" +
                             (folder / "model.bin").string());
  return "";
}

}  // namespace

RunReport run_experiment(const LoadedExperiment& loaded, const RunRequest& request,
                         const std::atomic<bool>& stop) {
  check_request(loaded, request);
  const std::string name = loaded.experiment.name;
  ResultsDir folder(request.out.empty() ? fs::path("results") / name : request.out, name);
  Prepared prepared = prepare(loaded);
  const RunPlan plan = prepared;
  const unsigned threads =
      request.threads > 0 ? request.threads : std::max(1u, std::thread::hardware_concurrency());

  Progress progress(name, plan.experiment.run.rounds, request.verbosity, request.log);
  for (const std::string& warning : plan.warnings) progress.note(LogLine::warning(warning));
  for (const fs::path& left : folder.cleared())
    progress.note(LogLine::warning("removed " + left.string() + ", which a run that was killed had left"));
  const fs::path metrics_file = folder.work() / "metrics.csv";
  Checkpoint checkpoint(folder.target(), to_toml(plan.experiment), metrics_file);
  const bool can_resume = request.transport != TransportKind::kTcp && request.checkpoint_seconds > 0;
  Checkpoints checkpoints;
  checkpoints.seconds = request.checkpoint_seconds;
  if (request.resume || can_resume) checkpoints.checkpoint = &checkpoint;
  if (request.resume) checkpoints.saved = checkpoint.resume();
  if (!request.resume && checkpoint.exists()) {
    progress.note(
        LogLine::warning("begins anew; the checkpoint of an earlier run, for --resume, is removed"));
    checkpoint.remove();
  }
  MetricsFile metrics(metrics_file, checkpoints.saved.round);
  std::uint32_t records = 0;
  RunObserver observer;
  observer.on_record = [&](const RoundRecord& record) {
    metrics.write(record);
    progress.record(record);
    ++records;
  };
  observer.on_round = [&](std::uint32_t rounds) { progress.round(rounds); };
  observer.on_note = [&](const LogLine& line) { progress.note(line); };

  RunReport report;
  try {
    report.result = request.transport == TransportKind::kTcp
                        ? run_over_tcp(prepared, observer, stop)
                        : simulate(std::move(prepared), request.transport == TransportKind::kEncoded, threads,
                                   observer, stop, checkpoints);
  } catch (const std::exception& error) {
    if (records < 2) throw;
    folder.keep();
    throw std::runtime_error(std::string(error.what()) + "; what was measured until then is in " +
                             folder.work().string());
  }
  progress.finish();
  const std::string rise = loss_rise(metrics.loss_at_start(), metrics.last());
  if (!rise.empty()) progress.note(LogLine::warning(rise));
  write_results(folder.work(), plan, request, threads, report.result, metrics);
  folder.publish();
  report.folder = folder.target();
  report.trouble = trouble_of(plan, report.result, report.folder, can_resume);
  if (report.result.outcome != Outcome::kStopped && checkpoint.used()) checkpoint.remove();
  return report;
}

}  // namespace gradwire
