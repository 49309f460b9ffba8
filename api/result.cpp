#include "gradwire/result.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include "api/content.h"
#include "api/measured_run.h"
#include "base/suggest.h"
#include "config/experiment_file.h"
#include "report/columns.h"
#include "report/earlier_results.h"
#include "report/metrics_file.h"
#include "report/results_dir.h"

namespace gradwire {
namespace {

double number_of(const std::optional<double>& value) {
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

MetricsRow row_of(const RoundRecord& r) {
  return {.round = r.round,
          .loss = r.loss,
          .grad_norm_sq = r.grad_norm_sq,
          .accuracy = r.accuracy,
          .bits_up = r.bits_up,
          .bits_down = r.bits_down,
          .bits_up_paper = r.bits_up_paper,
          .bits_down_paper = r.bits_down_paper,
          .bytes_up = r.bytes_up,
          .bytes_down = r.bytes_down,
          .grad_calls = r.grad_calls,
          .replies = r.replies,
          .seconds = r.seconds};
}

void set_records(MeasuredRun& measured, std::vector<RoundRecord> records) {
  measured.records = std::move(records);
  for (const RoundRecord& record : measured.records) measured.rows.push_back(row_of(record));
  if (measured.records.empty()) return;
  measured.run.last = measured.records.back();
  if (measured.records.front().round == 0) measured.run.loss_at_start = measured.records.front().loss;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TrainResult::TrainResult(std::shared_ptr<const MeasuredRun> run) : run_(std::move(run)) {}

std::span<const double> TrainResult::model() const { return run_->run.result.model; }
const std::vector<MetricsRow>& TrainResult::rows() const { return run_->rows; }

std::vector<double> TrainResult::metrics(std::string_view column) const {
  std::vector<double> values;
  for (const RoundRecord& record : run_->records)
    metric_columns(record, [&](std::string_view name, const auto& value, std::string_view) {
      if (name == column) values.push_back(number_of(static_cast<std::optional<double>>(value)));
    });
  if (values.size() == run_->records.size() && !values.empty()) return values;
  const std::vector<std::string> known = columns();
  if (std::ranges::find(known, column) != known.end()) return values;
  throw std::out_of_range("no column '" + std::string(column) + "' in metrics.csv" + suggest(column, known));
}

std::vector<std::string> TrainResult::columns() {
  std::vector<std::string> names;
  const RoundRecord any;
  metric_columns(any,
                 [&](std::string_view name, const auto&, std::string_view) { names.emplace_back(name); });
  return names;
}

std::string TrainResult::outcome() const {
  return run_->outcome.empty() ? outcome_name(run_->run.result.outcome) : run_->outcome;
}
std::string TrainResult::trouble() const { return run_->trouble; }
std::uint32_t TrainResult::rounds() const { return run_->run.result.rounds; }
double TrainResult::seconds() const { return run_->run.result.seconds; }
const std::vector<std::string>& TrainResult::warnings() const { return run_->warnings; }
Experiment TrainResult::experiment() const { return run_->asked; }

Experiment TrainResult::resolved() const {
  ExperimentContent content;
  content.loaded.experiment = run_->run.plan.experiment;
  content.loaded.file = run_->asked.content().loaded.file;
  content.text = to_toml(content.loaded.experiment);
  return Experiment(std::make_shared<const ExperimentContent>(std::move(content)));
}

std::string TrainResult::summary() const {
  if (run_->outcome == kRunning) return "";
  return run_->summary.empty() ? summary_text(run_->run) : run_->summary;
}

void TrainResult::save(const std::filesystem::path& folder, bool overwrite) const {
  const ExperimentSpec& experiment = run_->run.plan.experiment;
  ResultsDir results(folder, experiment.name);
  if (!overwrite) check_same_experiment(results.target(), experiment);
  MetricsFile metrics(results.work() / "metrics.csv");
  for (const RoundRecord& record : run_->records) metrics.write(record);
  write_results(results.work(), run_->run, /*figure=*/true);
  if (!run_->summary.empty()) write_text(results.work() / "summary.json", run_->summary);
  // The functions of a program are not in the experiment: the same keys may have had other results.
  if (!overwrite && !outcome_in(results.target()).empty() && !same_results(results.target(), results.work()))
    set_aside(results.target());
  results.publish();
}

}  // namespace gradwire
