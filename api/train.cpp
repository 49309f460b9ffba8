#include "gradwire/train.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "api/content.h"
#include "api/measured_run.h"
#include "api/program_parts.h"
#include "experiments/cli/run/run.h"
#include "report/metrics_reader.h"
#include "report/results_dir.h"
#include "report/summary.h"
#include "simulation/checked_objectives.h"
#include "simulation/prepare.h"

namespace gradwire {
namespace {

TransportKind transport_of(const std::string& name) {
  for (const TransportKind kind : {TransportKind::kMemory, TransportKind::kEncoded})
    if (transport_name(kind) == name) return kind;
  throw UsageError("transport: '" + name + "' is not one of memory, encoded");
}

RunRequest request_of(const TrainOptions& options, Brought brought) {
  RunRequest request;
  request.out = options.out;
  request.keeps_errors = true;
  request.transport = transport_of(options.transport);
  request.threads = options.threads;
  request.verbosity = Verbosity::kNotes;
  request.resume = options.fresh ? Resume::kFresh : Resume::kAuto;
  request.earlier = options.overwrite ? EarlierResults::kOverwrite : EarlierResults::kRefuse;
  request.checkpoint_seconds = options.checkpoint_seconds;
  request.prepare = [brought = std::move(brought)](const LoadedExperiment& loaded) {
    return prepare(loaded, nullptr, nullptr, {}, brought);
  };
  if (options.log) request.log = [&options](const LogLine& line) { options.log(line.text); };
  return request;
}

// Returns the experiment with the program's algorithm and compressor.
Experiment with_parts(const Experiment& experiment, const ProgramParts& parts) {
  if (!parts.algorithm && !parts.compressor) return experiment;
  ExperimentContent content = experiment.content();
  parts.add_to(content.loaded);
  return Experiment(std::make_shared<const ExperimentContent>(std::move(content)));
}

// TrainOptions::stop as the run sees it.
class StopRequest {
 public:
  explicit StopRequest(const std::stop_token& token)
      : on_stop_(token, [this] {
          give_up_at_ = Clock::now() + kPatience;
          stop_.store(true, std::memory_order_release);
        }) {}

  const std::atomic<bool>& flag() const { return stop_; }
  // Throws RoundGivenUp if the round in progress takes too long. Any thread may call it.
  void check() const {
    if (stop_.load(std::memory_order_acquire) && Clock::now() >= give_up_at_) throw RoundGivenUp();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPatience{50};

  std::atomic<bool> stop_{false};
  Clock::time_point give_up_at_;  // set before `stop_`
  std::stop_callback<std::function<void()>> on_stop_;
};

// Returns the function for Brought::before_gradient; empty if there is nothing to do.
std::function<void()> before_gradient(const TrainOptions& options, const StopRequest& stop) {
  if (!options.before_gradient && !options.stop.stop_possible()) return {};
  return [&options, &stop] {
    if (options.before_gradient) options.before_gradient();
    stop.check();
  };
}

// REQUIRES: the experiment has the keys of ProgramParts::keys().
TrainResult run(const Experiment& asked, const TrainOptions& options, Functions functions) {
  const ProgramParts parts(options);
  const Experiment experiment = with_parts(asked, parts);
  const LoadedExperiment& loaded = experiment.content().loaded;
  check_smoothness(options.smoothness, functions, experiment);
  auto measured = std::make_shared<MeasuredRun>(experiment);
  measured->run.plan.experiment = loaded.experiment;
  measured->run.result.outcome = Outcome::kStopped;
  const StopRequest stop(options.stop);
  RunRequest request = request_of(options, {.functions = std::move(functions),
                                            .reading = parts.reading(),
                                            .x0 = options.x0,
                                            .smoothness = options.smoothness,
                                            .before_gradient = before_gradient(options, stop)});
  std::vector<RoundRecord> records;
  if (options.out.empty()) request.on_record = [&](const RoundRecord& record) { records.push_back(record); };
  if (options.on_row)
    request.is_enough = [&](const RoundRecord& record) { return !options.on_row(row_of(record)); };
  request.on_round = options.on_round;
  request.on_failure = [&](const FinishedRun& run, const std::filesystem::path& folder) {
    measured->run = run;
    if (!folder.empty()) records = read_metrics(folder / "metrics.csv");
  };
  const auto result = [&] {
    set_records(*measured, std::move(records));
    measured->warnings = loaded.warnings;
    const std::vector<std::string>& more = measured->run.plan.warnings;
    measured->warnings.insert(measured->warnings.end(), more.begin(), more.end());
    const FinishedRun& run = measured->run;
    if (run.last && run.result.outcome != Outcome::kDiverged) {  // `trouble` reports a run that diverged
      std::string rise = loss_rise(run.loss_at_start, run.last, run.plan.experiment, run.plan.theory());
      if (!rise.empty()) measured->warnings.push_back(std::move(rise));
    }
    return TrainResult(measured);
  };
  try {
    with_errors_of_keys([&] {
      if (options.out.empty()) {
        measured->run = run_without_folder(loaded, request, stop.flag());
        measured->trouble = trouble_of(measured->run, {}, /*can_resume=*/false);
      } else {
        RunReport report = run_experiment(loaded, request, stop.flag());
        measured->run = std::move(report.run);
        measured->trouble = std::move(report.trouble);
        records = read_metrics(report.folder / "metrics.csv");  // with those of the run it resumed
      }
    });
  } catch (const RoundGivenUp&) {  // while constants were estimated
    measured->trouble = trouble_of(measured->run, {}, /*can_resume=*/false);
  } catch (...) {
    measured->trouble = trouble_of(measured->run, {}, /*can_resume=*/false);
    if (options.on_failure) options.on_failure(result());
    throw;
  }
  return result();
}

KeyValues keys_of(const Oracles& oracles, const TrainKeys& given, const TrainOptions& options) {
  if (options.compressor && given.compressor && given.compressor->find("(custom:") != std::string::npos)
    throw UsageError("algorithm.compressor: '" + *given.compressor +
                     "' has the program's compressor within another one; let its compress() do both");
  KeyValues keys = {{"problem.kind", "custom"}};
  if (!given.algorithm.empty() || !options.algorithm) keys.emplace_back("algorithm.name", given.algorithm);
  std::visit(
      [&]<class Real>(const std::vector<Oracle<Real>*>& all) {
        keys.emplace_back("clients.count", all.size());
        keys.emplace_back("problem.dim", all.front()->dim());
        keys.emplace_back("precision", std::is_same_v<Real, float> ? "fp32" : "fp64");
      },
      oracles.all());
  if (given.compressor) keys.emplace_back("algorithm.compressor", *given.compressor);
  if (given.step_size) keys.emplace_back("algorithm.step_size", *given.step_size);
  if (given.rounds) keys.emplace_back("run.rounds", *given.rounds);
  if (given.seed) keys.emplace_back("seed", *given.seed);
  const KeyValues parts = ProgramParts(options).keys();
  keys.insert(keys.end(), parts.begin(), parts.end());
  keys.insert(keys.end(), given.set.begin(), given.set.end());
  return keys;
}

}  // namespace

TrainResult train(const Experiment& experiment, const TrainOptions& options) {
  return run(experiment.with(ProgramParts(options).keys()), options, {});
}

TrainResult train(const Oracles& oracles, const Experiment& experiment, const TrainOptions& options) {
  return run(experiment.with(ProgramParts(options).keys()), options, functions_of(oracles));
}

TrainResult train(const Oracles& oracles, const TrainKeys& keys, const TrainOptions& options) {
  Functions functions = functions_of(oracles);
  return run(Experiment::from(keys_of(oracles, keys, options)), options, std::move(functions));
}

}  // namespace gradwire
