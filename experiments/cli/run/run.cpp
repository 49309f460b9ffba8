#include "experiments/cli/run/run.h"

#include <fstream>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "config/experiment_file.h"
#include "config/idle_keys.h"
#include "engine/kernels/select.h"
#include "experiments/cli/run/default_folder.h"
#include "experiments/cli/run/energy_log.h"
#include "experiments/cli/run/last_line.h"
#include "experiments/cli/run/monitor_plan.h"
#include "experiments/cli/run/tcp_run.h"
#include "parallel/processors.h"
#include "report/build_info.h"
#include "report/clients_file.h"
#include "report/earlier_results.h"
#include "report/metrics_file.h"
#include "report/preprocessing_file.h"
#include "report/results_dir.h"
#include "simulation/checkpoint.h"
#include "simulation/input_hash.h"
#include "simulation/prepare.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr const char* kEnergyFile = "energy.csv";

void check_request(const LoadedExperiment& loaded, const RunRequest& request) {
  const FaultsSection& f = loaded.experiment.faults;
  const bool faults = f.lost_replies > 0 || f.lost_requests > 0 || f.duplicates > 0 || f.crashes > 0 ||
                      f.state_loss > 0 || f.shuffle;
  const std::string option = "--transport " + transport_name(request.transport);
  if (is_networked(request.transport) && faults)
    throw UsageError(option +
                     ": [faults] works only in a simulation; use memory or encoded, or remove [faults]");
  if (is_networked(request.transport) && !loaded.experiment.clients.latency.empty())
    throw UsageError(option +
                     ": clients.latency works only in a simulation, on a virtual clock; use memory or "
                     "encoded, or remove it");
  const bool is_monitored = loaded.experiment.run.monitor;
  if (is_networked(request.transport) && is_monitored)
    throw UsageError(option +
                     ": run.monitor reads the data and the states of all clients, which are then in other "
                     "processes; use memory or encoded, or write monitor = false");
  if (request.ranks != nullptr && is_monitored)
    throw UsageError("run.monitor reads all clients, which several ranks divide; start the run once");
  if (request.resume == Resume::kYes && is_monitored)
    throw UsageError(
        "--resume: run.monitor knows the start of a run only in the process that began it; leave --resume "
        "out");
  if (request.ranks != nullptr && request.transport != TransportKind::kMemory)
    throw UsageError(
        "--transport: several ranks can share only a run in memory; leave it out, or start the run once");
  if (is_networked(request.transport) && request.resume == Resume::kYes)
    throw UsageError(
        "--resume: gradwire cannot resume runs over a network; leave --transport out, or start "
        "gradwire-server yourself, which resumes by itself");
}

EnergyUse tell_energy(EnergyLog& energy, const RunResult& result, Progress& progress) {
  const EnergyUse use = energy.use();
  const std::string text = energy_text(use.energy);
  if (!text.empty())
    progress.note(LogLine("energy of the machine during the run: " + text + ", of " +
                          std::to_string(result.rounds) + " rounds"));
  if (!use.trouble.empty()) progress.note(LogLine::warning(use.trouble));
  return use;
}

// Throws the error with a note about the files that the failed run has left. Rethrows the error unchanged if
// there are none, or if the request wants this. REQUIRES: an exception is being handled.
[[noreturn]] void fail_with_what_is_left(const std::string& error, std::uint32_t records, ResultsDir& folder,
                                         RunCheckpoint& checkpoint, bool keeps_error, Progress& progress) {
  std::string left;
  if (records > 1) {
    folder.keep();
    left = "; the measurements until then are in " + folder.work().string();
  }
  if (checkpoint.used() && checkpoint.has_snapshot())
    left += "; the same command continues from the last checkpoint";
  if (left.empty()) throw;
  if (keeps_error) {
    progress.note(LogLine::warning("the run failed" + left));
    throw;
  }
  throw std::runtime_error(error + left);
}

Prepared prepare_for(const LoadedExperiment& loaded, const RunRequest& request) {
  Prepared prepared = request.prepare ? request.prepare(loaded) : prepare(loaded, request.ranks.get());
  try {
    if (prepared.experiment.run.monitor) prepared.monitor = monitor_plan(prepared);
  } catch (const ConfigError& error) {
    throw locate(loaded, error);
  }
  if (request.ranks != nullptr) check_for_ranks(prepared);
  return prepared;
}

// Returns the checkpoint to resume from, or moves it aside if the user wants a new run.
RunCheckpoint::Saved begin_or_resume(RunCheckpoint& checkpoint, Resume resume, Progress& progress) {
  if (resume == Resume::kFresh) {
    if (const std::optional<fs::path> kept = checkpoint.set_aside())
      progress.note(LogLine("starts again; moved the checkpoint of an earlier run to " + kept->string()));
    return {};
  }
  std::optional<RunCheckpoint::Saved> saved =
      resume == Resume::kYes ? checkpoint.resume() : checkpoint.find();
  if (!saved) {
    checkpoint.remove();  // it has no snapshot
    return {};
  }
  progress.note(LogLine("a checkpoint of round " + count_text(saved->round) +
                        " is here: resuming; --fresh starts again"));
  return std::move(*saved);
}

// Reports the checkpoint of an earlier run, which a run that cannot be resumed leaves alone.
void leave_checkpoint(const RunCheckpoint& checkpoint, const RunPlan& plan, Progress& progress) {
  if (!checkpoint.exists()) return;
  progress.note(LogLine("the checkpoint in " + checkpoint.folder().string() + " stays: a run " +
                        (plan.experiment.run.monitor ? "with run.monitor" : "over a network") +
                        " does not use it"));
}

// Moves results that this run would replace by others out of the way, except those of the stopped run that it
// continues. Other data or another program lead to other results of the same settings.
void keep_earlier_results(const ResultsDir& folder, const ExperimentSpec& resolved, Progress& progress) {
  if (!identify_run(folder.target())) return;
  const bool continues =
      outcome_in(folder.target()).empty() && changed_setting(folder.target(), resolved).empty();
  const bool measured = fs::exists(folder.target() / kEnergyFile);
  if (continues || (!measured && same_results(folder.target(), folder.work()))) return;
  const fs::path kept = set_aside(folder.target());
  progress.note(LogLine::warning("the results differ from those that an earlier run left in " +
                                 folder.target().string() + "; moved the earlier ones to " + kept.string()));
}

unsigned threads_of(const RunRequest& request) {
  return request.threads > 0 ? request.threads : usable_processors();
}

// Simulates the run. Only the first rank has checkpoints; all ranks get the state that it saved.
RunResult simulate_in_memory(Prepared&& prepared, const RunRequest& request, const RunObserver& observer,
                             const std::atomic<bool>& stop, Checkpoints checkpoints) {
  if (request.ranks == nullptr)
    return simulate(std::move(prepared), request.transport == TransportKind::kEncoded, threads_of(request),
                    observer, stop, std::move(checkpoints));
  try {
    checkpoints.saved = share_saved(*request.ranks, std::move(checkpoints.saved));
    return simulate(std::move(prepared), false, threads_of(request), observer, stop, std::move(checkpoints),
                    request.ranks);
  } catch (const LostStep& lost) {
    throw RankFailure("rank " + std::to_string(request.ranks->rank()) + ": " + lost.what);
  } catch (const std::bad_alloc&) {
    throw RankFailure("rank " + std::to_string(request.ranks->rank()) + ": there is not enough memory");
  } catch (const std::exception& error) {
    throw RankFailure("rank " + std::to_string(request.ranks->rank()) + ": " + error.what());
  }
}

// Returns a text that must be equal on all ranks: the resolved run, the program, and its kernels.
std::string run_text(const RunPlan& plan) {
  return to_toml(plan.experiment) + build_info() + ", kernels " + kernels_name(plan.experiment.run.kernels);
}

bool can_resume(const RunPlan& plan, const RunRequest& request) {
  return !is_networked(request.transport) && !plan.experiment.run.monitor;
}

bool saves_checkpoints(const RunPlan& plan, const RunRequest& request) {
  return can_resume(plan, request) && request.checkpoint_seconds > 0;
}

// Returns the facts about the run's inputs that its checkpoint records. Collective.
RunInputs inputs_of(const Prepared& prepared, const RunRequest& request) {
  // Uses the old names: checkpoints of earlier releases contain them, and the texts are compared.
  RunInputs inputs{to_toml(prepared.experiment, Names::kOld)};
  const bool resumes = can_resume(prepared, request) && request.resume != Resume::kFresh;
  if (!saves_checkpoints(prepared, request) && !resumes) return inputs;
  inputs.samples = hash_of_samples(prepared.data, request.ranks.get());
  inputs.traces = hash_of_traces(prepared.seconds);
  inputs.program = hash_of_program(prepared);
  return inputs;
}

// Returns the function for RunObserver::on_failure.
std::function<void(const RunResult&)> on_failure(const RunRequest& request, FinishedRun& run,
                                                 const fs::path& folder) {
  return [&request, &run, folder](const RunResult& result) {
    run.result = result;
    if (request.on_failure) request.on_failure(run, folder);
  };
}

// Runs the experiment on a rank other than the first. Only the first rank has files and prints for the user.
RunReport run_on_other_rank(const LoadedExperiment& loaded, const RunRequest& request,
                            const std::atomic<bool>& stop) {
  Ranks* const ranks = request.ranks.get();
  Prepared prepared;
  all_or_none(ranks, [&] {
    check_request(loaded, request);
    prepared = prepare_for(loaded, request);
  });
  check_same_run(*ranks, run_text(prepared));
  inputs_of(prepared, request);
  all_or_none(ranks, [] {});  // meanwhile the first rank opens its files
  Checkpoints checkpoints;
  checkpoints.seconds = request.checkpoint_seconds;
  RunReport report;
  RunObserver observer;
  // Evaluations are collective: if the first rank asks for the answers of clients, this rank must do so as
  // well.
  if (client_metrics(prepared.experiment) != ClientMetrics::kNone)
    observer.on_clients = [](std::uint32_t, std::span<const ClientEvaluation>) {};
  report.run.result =
      simulate_in_memory(std::move(prepared), request, observer, stop, std::move(checkpoints));
  return report;
}

}  // namespace

RunReport run_experiment(const LoadedExperiment& loaded, const RunRequest& request,
                         const std::atomic<bool>& stop) {
  if (request.ranks != nullptr && request.ranks->rank() > 0) return run_on_other_rank(loaded, request, stop);
  const std::string name = loaded.experiment.name;
  std::optional<ResultsDir> made;
  Prepared prepared;
  all_or_none(request.ranks.get(), [&] {
    check_request(loaded, request);
    made.emplace(request.out.empty() ? default_folder(loaded) : request.out, name);
    prepared = prepare_for(loaded, request);
    if (request.earlier == EarlierResults::kRefuse)
      check_same_experiment(made->target(), prepared.experiment);
  });
  if (request.ranks != nullptr) check_same_run(*request.ranks, run_text(prepared));
  ResultsDir& folder = *made;
  RunReport report;
  FinishedRun& run = report.run;
  run.plan = prepared;
  run.preprocessing = prepared.preprocessing;
  run.transport = request.transport;
  run.threads = threads_of(request);
  const RunPlan& plan = run.plan;

  Progress progress(name, plan.experiment.run.rounds, request.verbosity, request.log);
  for (const auto* warnings : {&loaded.warnings, &plan.warnings})
    for (const std::string& warning : *warnings) progress.note(LogLine::warning(warning));
  if (!is_networked(request.transport))
    for (const std::string& key : keys_of(RunIn::kNetwork, loaded))
      progress.note(LogLine(key + " has no effect in memory; it applies to clients over a network"));
  for (const LeftRun& left : folder.cleared())
    progress.note(LogLine::warning("removed " + left.folder.string() + ", which a killed run had left" +
                                   (left.has_checkpoint ? "; its checkpoint stays" : "")));
  const fs::path metrics_file = folder.work() / "metrics.csv";
  RunCheckpoint checkpoint(folder.target(), inputs_of(prepared, request), metrics_file);
  const bool saves = saves_checkpoints(plan, request);
  Checkpoints checkpoints;
  checkpoints.seconds = request.checkpoint_seconds;
  std::optional<MetricsFile> file;
  std::optional<ClientsFile> clients;
  const fs::path clients_file = folder.work() / kClientsFile;
  if (client_metrics(plan.experiment) == ClientMetrics::kAll) checkpoint.copy_also(clients_file);
  all_or_none(request.ranks.get(), [&] {
    if (can_resume(plan, request))
      checkpoints.saved = begin_or_resume(checkpoint, request.resume, progress);
    else
      leave_checkpoint(checkpoint, plan, progress);
    if (saves || !checkpoints.saved.sections.empty()) checkpoints.checkpoint = &checkpoint;
    progress.resume_after(checkpoints.saved.round);
    // Readers of the growing folder need the settings.
    std::ofstream(folder.work() / "config.toml", std::ios::binary) << to_toml(plan.experiment);
    file.emplace(metrics_file, checkpoints.saved.round);
    clients.emplace(clients_file, client_metrics(plan.experiment), checkpoints.saved.round,
                    [&samples = plan.client_samples](std::uint32_t client) {
                      return DescribedClient{.samples = client < samples.size() ? samples[client] : 0};
                    });
  });
  MetricsFile& metrics = *file;
  checkpoints.saved.plateau = metrics.plateau();
  std::optional<EnergyLog> energy;
  if (request.energy) energy.emplace(*request.energy, folder.work() / kEnergyFile);
  std::uint32_t records = 0;
  RunObserver observer;
  observer.on_record = [&](const RoundRecord& record) {
    metrics.write(record);
    if (request.on_record) request.on_record(record);
    progress.record(record);
    if (energy && is_networked(request.transport)) energy->round(record.round);
    ++records;
  };
  observer.on_round = [&](std::uint32_t rounds) {
    progress.round(rounds);
    if (request.on_round) request.on_round(rounds);
    if (energy) energy->round(rounds);
  };
  observer.is_enough = request.is_enough;
  observer.on_note = [&](const LogLine& line) { progress.note(line); };
  observer.on_clients = clients->writer();
  observer.on_failure = on_failure(request, run, folder.work());

  const auto guard = [&](const auto& work) {
    try {
      work();
    } catch (const std::exception& error) {
      if (request.ranks != nullptr) throw;
      fail_with_what_is_left(error.what(), records, folder, checkpoint, request.keeps_errors, progress);
    }
  };
  guard([&] {
    run.result = is_networked(request.transport) ? run_over_tcp(prepared, request.transport, observer, stop)
                                                 : simulate_in_memory(std::move(prepared), request, observer,
                                                                      stop, std::move(checkpoints));
  });
  progress.finish();
  if (const std::string share = evaluation_share(run.result.evaluation_seconds, run.result.seconds);
      !share.empty())
    progress.note(LogLine(share));
  run.last = metrics.last();
  run.loss_at_start = metrics.loss_at_start();
  const std::string rise = loss_rise(run.loss_at_start, run.last, plan.experiment, plan.theory());
  const RunResult& result = run.result;
  const std::string reason = end_reason(plan.experiment, result.outcome, run.last);
  if (!reason.empty())
    progress.note(LogLine("ended after round " + std::to_string(result.rounds) + ": " + reason));
  // If the run diverged, its error message says more.
  if (!rise.empty() && result.outcome != Outcome::kDiverged) progress.note(LogLine::warning(rise));
  if (!result.monitor.empty())
    progress.note(result.crossed ? LogLine::warning(result.monitor) : LogLine(result.monitor));
  if (energy) run.energy = tell_energy(*energy, result, progress);
  guard([&] {
    write_results(folder.work(), run, request.figure);
    clients->finish();
    if (!result.clients.empty()) write_text(clients_file, result.clients);
  });
  if (const std::string stuck = stuck_accuracy(folder.work() / "metrics.csv"); !stuck.empty())
    progress.note(LogLine::warning(stuck));
  std::vector<const char*> missing;  // files that this run did not write; an earlier run may have left them
  for (const char* name : {kEnergyFile, kClientsFile, kPreprocessingFile})
    if (!fs::exists(folder.work() / name)) missing.push_back(name);
  if (request.earlier != EarlierResults::kOverwrite) keep_earlier_results(folder, plan.experiment, progress);
  folder.publish();
  report.folder = folder.target();
  for (const char* name : missing) fs::remove(report.folder / name);
  report.trouble = trouble_of(run, report.folder, saves);
  if (request.verbosity == Verbosity::kNormal)
    report.last_line = last_line(plan, result, report.folder.lexically_proximate(fs::current_path()));
  if (result.outcome != Outcome::kStopped && checkpoint.used()) checkpoint.remove();
  return report;
}

FinishedRun run_without_folder(const LoadedExperiment& loaded, const RunRequest& request,
                               const std::atomic<bool>& stop) {
  check_request(loaded, request);
  Prepared prepared = prepare_for(loaded, request);
  FinishedRun run;
  run.plan = prepared;
  run.preprocessing = prepared.preprocessing;
  run.transport = request.transport;
  run.threads = threads_of(request);
  const auto note = [&](const LogLine& line) {
    if (request.log) request.log(line);
  };
  for (const auto* warnings : {&loaded.warnings, &std::as_const(run.plan.warnings)})
    for (const std::string& warning : *warnings) note(LogLine::warning(warning));
  RunObserver observer;
  observer.on_record = [&](const RoundRecord& record) {
    if (record.round == 0) run.loss_at_start = record.loss;
    run.last = record;
    if (request.on_record) request.on_record(record);
  };
  observer.on_round = request.on_round;
  observer.is_enough = request.is_enough;
  observer.on_note = note;
  observer.on_failure = on_failure(request, run, {});
  run.result = is_networked(request.transport)
                   ? run_over_tcp(prepared, request.transport, observer, stop)
                   : simulate_in_memory(std::move(prepared), request, observer, stop, {});
  return run;
}

}  // namespace gradwire
