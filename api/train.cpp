#include "gradwire/train.h"

#include <atomic>
#include <memory>
#include <utility>

#include "api/content.h"
#include "api/measured_run.h"
#include "experiments/cli/run/run.h"
#include "report/metrics_reader.h"
#include "report/results_dir.h"
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

TrainResult run(const Experiment& experiment, const TrainOptions& options, Functions functions) {
  auto measured = std::make_shared<MeasuredRun>(experiment);
  RunRequest request = request_of(options, {.functions = std::move(functions), .x0 = options.x0});
  if (options.out.empty())
    request.on_record = [&](const RoundRecord& record) { measured->records.push_back(record); };
  if (options.on_row)
    request.is_enough = [&](const RoundRecord& record) { return !options.on_row(row_of(record)); };
  std::atomic<bool> stop{false};
  const std::stop_callback on_stop(options.stop, [&] { stop = true; });
  const LoadedExperiment& loaded = experiment.content().loaded;
  with_errors_of_keys([&] {
    if (options.out.empty()) {
      measured->run = run_without_folder(loaded, request, stop);
      measured->trouble = trouble_of(measured->run, {}, /*can_resume=*/false);
    } else {
      RunReport report = run_experiment(loaded, request, stop);
      measured->run = std::move(report.run);
      measured->trouble = std::move(report.trouble);
      measured->records = read_metrics(report.folder / "metrics.csv");  // with those of the run it resumed
    }
  });
  for (const RoundRecord& record : measured->records) measured->rows.push_back(row_of(record));
  measured->warnings = loaded.warnings;
  const std::vector<std::string>& more = measured->run.plan.warnings;
  measured->warnings.insert(measured->warnings.end(), more.begin(), more.end());
  return TrainResult(std::move(measured));
}

Functions functions_of(const Oracles& oracles) {
  Functions functions;
  std::visit(
      [&]<class Real>(const std::vector<Oracle<Real>*>& all) {
        if (all.empty()) throw UsageError("oracles: none is given; a run needs those of at least one client");
        functions.of<Real>() = std::make_shared<const OracleList<Real>>(all);
      },
      oracles.all());
  return functions;
}

KeyValues keys_of(const Oracles& oracles, const TrainKeys& given) {
  KeyValues keys = {{"problem.kind", "custom"}, {"algorithm.name", given.algorithm}};
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
  keys.insert(keys.end(), given.set.begin(), given.set.end());
  return keys;
}

}  // namespace

TrainResult train(const Experiment& experiment, const TrainOptions& options) {
  return run(experiment, options, {});
}

TrainResult train(const Oracles& oracles, const Experiment& experiment, const TrainOptions& options) {
  return run(experiment, options, functions_of(oracles));
}

TrainResult train(const Oracles& oracles, const TrainKeys& keys, const TrainOptions& options) {
  Functions functions = functions_of(oracles);
  return run(Experiment::from(keys_of(oracles, keys)), options, std::move(functions));
}

}  // namespace gradwire
