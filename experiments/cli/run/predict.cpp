#include "experiments/cli/run/predict.h"

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/config_error.h"
#include "base/value.h"
#include "config/start_point.h"
#include "engine/problems/problem.h"
#include "report/csv_field.h"
#include "report/results_dir.h"
#include "samples/local_problem.h"
#include "simulation/prepare.h"

namespace gradwire {
namespace {

// Returns the number of columns that become the features of a model.
std::size_t table_columns(const ModelData& model, const RowsData& rows) {
  if (model.preprocessing.encoding != nullptr) return model.preprocessing.encoding->features.size();
  std::size_t columns = model.trained_on->columns;
  for (const auto& [name, texts] : rows.categories.columns)
    columns -= TableEncoding::Column{.name = name, .texts = texts}.width() - 1;
  return columns;
}

SharedSamples read_rows(const ModelData& model, const RowsData& rows) {
  Reading reading;
  reading.rows = [&](std::string_view source, const std::filesystem::path& base,
                     const SyntheticSpec& synthetic, std::size_t dim, const KeepRow& keep, SampleUse use,
                     TableReading table) {
    table.options.to_predict = table_columns(model, rows);
    if (table.options.label.empty() && table.encoding != nullptr)
      table.options.label = table.encoding->label.name;
    return read_source(source, base, synthetic, dim, keep, use, table);
  };
  return load_samples(model.loaded.experiment, model.loaded.folder(), std::nullopt, reading,
                      model.preprocessing);
}

}  // namespace

std::string predictions_csv(const ModelRequest& request) {
  ModelData model = load_model_data(request);
  ExperimentSpec& e = model.loaded.experiment;
  const ProblemSpec spec = problem_spec(e);
  if (!predicts_from_rows(spec.problem))
    throw UsageError("predict: problem.kind = \"" + std::string(spec.info().name) +
                     "\" does not predict from rows; logistic, least_squares, mlp and cnn do");
  if (!model.trained_on)
    throw UsageError(model.model.string() +
                     ": has no summary.json next to it, which says what the model was trained on; put the "
                     "one of its run there");
  sources_of(e.problem)->test.clear();
  const RowsData& rows = *rows_of(e.problem);
  const SharedSamples samples = read_rows(model, rows);
  for (const std::string& warning : samples.warnings)
    if (request.log) request.log(LogLine::warning(warning));
  const DataSchema& schema = *model.trained_on;
  check_schema(spec, schema);
  if (const TableEncoding* const table = samples.train.encoding.get(); table != nullptr)
    check_feature_names(table->feature_names(), schema.feature_names);
  if (samples.train.columns > schema.columns)
    throw DataError("the data have " + std::to_string(samples.train.columns) +
                    " features, but the model was trained on " + std::to_string(schema.columns) +
                    "; problem.columns names the columns of the features");
  std::vector<double> x;
  try {
    x = start_point(e, schema, model.loaded.folder());
  } catch (const ConfigError& error) {
    throw UsageError(error.what());
  }
  const bool has_classes = spec.info().has_classes;
  std::string text = has_classes ? "row,class,probability\n" : "row,value\n";
  std::size_t row = 0;
  for (const Prediction& prediction : predict(spec, schema, samples.train, x)) {
    text += std::to_string(++row) + "," +
            (has_classes ? csv_field(label_text(samples.train.encoding.get(), prediction.value))
                         : number_text(prediction.value));
    if (prediction.probability) text += "," + number_text(*prediction.probability);
    text += "\n";
  }
  return text;
}

}  // namespace gradwire
