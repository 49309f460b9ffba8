// The content of a TrainResult.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/cli/run/finished_run.h"
#include "gradwire/result.h"
#include "rounds/round_loop.h"

namespace gradwire {

inline constexpr const char* kRunning = "running";  // the outcome of a run that continues

struct MeasuredRun {
  explicit MeasuredRun(Experiment experiment) : asked(std::move(experiment)) {}

  Experiment asked;
  FinishedRun run;
  std::vector<RoundRecord> records;
  std::vector<MetricsRow> rows;  // the same
  std::vector<std::string> warnings;
  std::string trouble;
  std::string outcome;  // of a run that was read; else `run` has it
  std::string summary;  // the summary.json of a server, or as read; empty if summary_text(run) gives it
};

MetricsRow row_of(const RoundRecord& record);
// Reads a folder of results, for TrainResult::read().
std::shared_ptr<MeasuredRun> read_results(const std::filesystem::path& folder);
// Sets the records and what follows from them.
void set_records(MeasuredRun& measured, std::vector<RoundRecord> records);
// Returns the content of a file, or "" if there is none.
std::string text_of(const std::filesystem::path& file);

}  // namespace gradwire
