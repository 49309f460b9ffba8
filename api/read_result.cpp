#include <memory>
#include <utility>

#include "api/content.h"
#include "api/measured_run.h"
#include "gradwire/result.h"
#include "report/earlier_results.h"
#include "report/json.h"
#include "report/metrics_reader.h"
#include "report/preprocessing_file.h"
#include "report/results_dir.h"
#include "storage/model_file.h"

namespace gradwire {
namespace fs = std::filesystem;
namespace {

// Takes what only the summary of a run says.
void read_summary(MeasuredRun& measured, const fs::path& file) {
  measured.summary = text_of(file);
  try {
    const Json json = Json::parse(measured.summary);
    measured.outcome = json.at("outcome").get<std::string>();
    measured.run.result.rounds = json.at("rounds").get<std::uint32_t>();
    measured.run.result.seconds = json.at("seconds").get<double>();
    for (const Json& line : json.at("warnings")) measured.warnings.push_back(line.get<std::string>());
  } catch (const Json::exception&) {
    throw BadInput(file.string() + ": not a summary that gradwire wrote; run the experiment again");
  }
}

}  // namespace

TrainResult TrainResult::read(const fs::path& folder) {
  // A run fills a hidden folder, and gives it the name at its end.
  const auto growing = outcome_in(folder).empty() ? growing_results(folder) : std::nullopt;
  return TrainResult(read_results(growing.value_or(folder)));
}

std::shared_ptr<MeasuredRun> read_results(const fs::path& folder) {
  for (const char* name : {"config.toml", "metrics.csv"})
    if (!fs::exists(folder / name))
      throw BadInput(folder.string() + ": no results here: " + name +
                     " is missing; name a folder of gradwire run or of a server");
  auto measured = std::make_shared<MeasuredRun>(Experiment::load(folder / "config.toml"));
  FinishedRun& run = measured->run;
  run.plan.asked = run.plan.experiment = measured->asked.content().loaded.experiment;
  set_records(*measured, read_metrics(folder / "metrics.csv"));
  if (auto preprocessing = preprocessing_in(folder)) run.preprocessing = *std::move(preprocessing);
  if (fs::exists(folder / "summary.json")) {
    read_summary(*measured, folder / "summary.json");
    run.result.model = read_model(folder / "model.bin");
  } else {
    measured->outcome = kRunning;
    run.result.rounds = run.last ? run.last->round : 0;
  }
  return measured;
}

}  // namespace gradwire
