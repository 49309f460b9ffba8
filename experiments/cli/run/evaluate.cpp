#include "experiments/cli/run/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "parallel/processors.h"
#include "report/json.h"
#include "simulation/prepare.h"
#include "simulation/simulate.h"

namespace gradwire {

namespace {

Prepared prepare_model(const ModelData& model) {
  try {
    return prepare(model.loaded, nullptr, model.trained_on ? &*model.trained_on : nullptr,
                   model.preprocessing);
  } catch (const ExperimentError& error) {
    // Removes the key from the message: the user named a model, not run.x0.
    constexpr std::string_view kOption = "--set run.x0: ";
    const std::string what = error.what();
    if (!what.starts_with(kOption)) throw;
    const RowsData* const rows = rows_of(model.loaded.experiment.problem);
    const bool may_lack_features =
        rows != nullptr && rows->dim == 0 && what.find(", but the model of") != what.npos;
    throw ExperimentError(what.substr(kOption.size()) +
                          (may_lack_features
                               ? "; if these data lack features of the model, set problem.dim to the "
                                 "number that it was trained with"
                               : ""));
  }
}

// Adds the measures of real labels.
void measure_values(const Prepared& run, ModelEvaluation& found) {
  const Dataset& data = run.data.test.rows() > 0 ? run.data.test : run.data.train;
  if (run.problem.info().has_classes || !predicts_from_rows(run.problem.problem) || data.rows() == 0) return;
  double mean = 0, squares = 0, spread = 0;
  const auto count = static_cast<double>(data.rows());
  for (const double label : data.label) mean += label / count;
  const std::vector<Prediction> predictions = predict(run.problem, run.schema, data, run.x0);
  for (std::size_t r = 0; r < data.rows(); ++r) {
    squares += (predictions[r].value - data.label[r]) * (predictions[r].value - data.label[r]) / count;
    spread += (data.label[r] - mean) * (data.label[r] - mean) / count;
  }
  found.rmse = std::sqrt(squares);
  if (spread > 0) found.r_squared = 1 - squares / spread;
}

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

ModelEvaluation evaluate_model(const ModelRequest& request, const std::atomic<bool>& stop) {
  // Evaluates the model by a run with 0 rounds that starts from it. The first row is the evaluation.
  const ModelData model = load_model_data(request);
  Prepared run = prepare_model(model);
  std::vector<std::string>& warnings = run.data.warnings;  // the test data may give the same ones again
  for (auto at = warnings.begin(); at != warnings.end(); ++at)
    if (request.log && std::find(warnings.begin(), at, *at) == at) request.log(LogLine::warning(*at));
  ModelEvaluation found;
  found.regularizer = regularizer_of(run.problem.problem, run.x0);
  measure_values(run, found);
  std::optional<RoundRecord> record;
  RunObserver observer;
  observer.on_record = [&](const RoundRecord& first) { record = first; };
  const unsigned threads = request.threads > 0 ? request.threads : usable_processors();
  simulate(std::move(run), false, threads, observer, stop);
  if (!record)
    throw std::runtime_error(model.model.string() + ": the loss or the gradient at this model is not finite");
  found.record = *record;
  return found;
}

std::string evaluation_text(const ModelEvaluation& e) {
  std::string line = number("loss %.6g", e.record.loss);
  if (e.regularizer)
    line += number(" (data %.6g", e.record.loss - *e.regularizer) +
            number(" + regularizer %.6g)", *e.regularizer);
  if (e.record.grad_norm_sq) line += number(", |grad f|^2 %.6g", *e.record.grad_norm_sq);
  if (e.record.accuracy) line += number(", accuracy %.2f %%", 100 * *e.record.accuracy);
  if (e.rmse) line += number(", RMSE %.6g", *e.rmse);
  if (e.r_squared) line += number(", R^2 %.4f", *e.r_squared);
  return line;
}

std::string evaluation_json(const ModelEvaluation& e) {
  Json json = {{"loss", e.record.loss}};
  if (e.record.grad_norm_sq) json["grad_norm_sq"] = *e.record.grad_norm_sq;
  if (e.record.accuracy) json["accuracy"] = *e.record.accuracy;
  if (e.regularizer) {
    json["data_loss"] = e.record.loss - *e.regularizer;
    json["regularizer"] = *e.regularizer;
  }
  if (e.rmse) json["rmse"] = *e.rmse;
  if (e.r_squared) json["r_squared"] = *e.r_squared;
  return json_line(json);
}

}  // namespace gradwire
