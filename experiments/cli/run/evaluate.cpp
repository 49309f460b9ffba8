#include "experiments/cli/run/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "config/experiment_file.h"
#include "parallel/processors.h"
#include "report/json.h"
#include "report/preprocessing_file.h"
#include "report/summary.h"
#include "simulation/prepare.h"
#include "simulation/simulate.h"

namespace gradwire {

namespace {

// Returns the preprocessing of the model's training data. Warns if the model's folder does not have one that
// the experiment needs, or has another one.
Preprocessing preprocessing_of(const EvaluateRequest& request, const ExperimentSpec& experiment) {
  const Preprocessing stored = preprocessing_in(request.model.parent_path()).value_or(Preprocessing());
  const RowsData* const rows = rows_of(experiment.problem);
  const Normalize asked = rows == nullptr ? Normalize::kNone : rows->normalize;
  const Normalize used = stored.normalization == nullptr ? Normalize::kNone : stored.normalization->kind;
  if (used == asked || !request.log) return stored;
  const auto word = [](Normalize kind) { return "\"" + std::string(normalize_word(kind)) + "\""; };
  if (used != Normalize::kNone)
    request.log(LogLine::warning("the model was trained with problem.normalize = " + word(used) +
                                 ", which replaces " + word(asked) + " of the experiment"));
  else if (needs_sums(asked))
    request.log(LogLine::warning(
        "problem.normalize = " + word(asked) + " is computed from these data, because there is no " +
        std::string(kPreprocessingFile) + " next to the model; put the one of its run there"));
  return stored;
}

}  // namespace

RoundRecord evaluate_model(const EvaluateRequest& request, const std::atomic<bool>& stop) {
  // Evaluates the model by a run with 0 rounds that starts from it. The first row is the evaluation.
  std::vector<std::string> sets = request.sets;
  sets.push_back("run.x0=file:" + std::filesystem::absolute(request.model).string());
  sets.emplace_back("run.rounds=0");
  sets.emplace_back("run.evaluate_every=1");
  sets.emplace_back("run.stop_at_grad_norm_sq=0");
  sets.emplace_back("clients.latency=");
  LoadedExperiment loaded = load_experiment(request.file, sets);
  loaded.experiment.faults = {};
  if (request.log)
    for (const std::string& warning : loaded.warnings) request.log(LogLine::warning(warning));
  const std::optional<DataSchema> trained_on =
      schema_in_summary(request.model.parent_path(), info_of(loaded.experiment.problem).name);
  const Preprocessing preprocessing = preprocessing_of(request, loaded.experiment);
  const auto prepared = [&] {
    try {
      return prepare(loaded, nullptr, trained_on ? &*trained_on : nullptr, preprocessing);
    } catch (const ExperimentError& error) {
      // Removes the key from the message: the user named a model, not run.x0.
      constexpr std::string_view kOption = "--set run.x0: ";
      const std::string what = error.what();
      if (!what.starts_with(kOption)) throw;
      const RowsData* const rows = rows_of(loaded.experiment.problem);
      const bool may_lack_features =
          rows != nullptr && rows->dim == 0 && what.find(", but the model of") != what.npos;
      throw ExperimentError(what.substr(kOption.size()) +
                            (may_lack_features
                                 ? "; if these data lack features of the model, set problem.dim to the "
                                   "number that it was trained with"
                                 : ""));
    }
  };
  std::optional<RoundRecord> found;
  RunObserver observer;
  observer.on_record = [&](const RoundRecord& record) { found = record; };
  const unsigned threads = request.threads > 0 ? request.threads : usable_processors();
  Prepared run = prepared();
  for (const std::string& warning : run.data.warnings)
    if (request.log) request.log(LogLine::warning(warning));
  simulate(std::move(run), false, threads, observer, stop);
  if (!found)
    throw std::runtime_error(request.model.string() +
                             ": the loss or the gradient at this model is not finite");
  return *found;
}

std::string evaluation_text(const RoundRecord& record) {
  char text[128];
  std::snprintf(text, sizeof text, "loss %.6g", record.loss);
  std::string line = text;
  if (record.grad_norm_sq) {
    std::snprintf(text, sizeof text, ", |grad f|^2 %.6g", *record.grad_norm_sq);
    line += text;
  }
  if (record.accuracy) {
    std::snprintf(text, sizeof text, ", accuracy %.2f %%", 100 * *record.accuracy);
    line += text;
  }
  return line;
}

std::string evaluation_json(const RoundRecord& record) {
  Json json = {{"loss", record.loss}};
  if (record.grad_norm_sq) json["grad_norm_sq"] = *record.grad_norm_sq;
  if (record.accuracy) json["accuracy"] = *record.accuracy;
  return json_line(json);
}

}  // namespace gradwire
