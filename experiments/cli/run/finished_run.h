// The outcome of a run with everything that its results contain.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "config/run_plan.h"
#include "engine/data/shared_samples.h"
#include "report/summary.h"
#include "simulation/simulate.h"

namespace gradwire {

std::string transport_name(TransportKind kind);  // "memory", "encoded", "tcp" or "tls"

struct FinishedRun {
  RunPlan plan;
  Preprocessing preprocessing;
  TransportKind transport = TransportKind::kMemory;
  unsigned threads = 1;
  RunResult result;
  std::optional<RoundRecord> last;      // last row of the metrics; empty if there is none
  std::optional<double> loss_at_start;  // loss in row 0; empty if not evaluated
  std::optional<EnergyUse> energy;
};

// Returns the text of summary.json.
std::string summary_text(const FinishedRun& run);

// Returns a warning if all rows of a metrics.csv have the same accuracy, below 1. Empty if they differ, or if
// there are too few. Throws std::runtime_error.
std::string stuck_accuracy(const std::filesystem::path& metrics);

// Writes one text file of the results. Throws std::runtime_error (one line).
void write_text(const std::filesystem::path& file, const std::string& text);

// Writes the files of the results except metrics.csv and clients.csv, which a run writes row by row. With
// `figure`, also draws plot.svg from the metrics.csv in the folder. Throws std::runtime_error (one line).
void write_results(const std::filesystem::path& folder, const FinishedRun& run, bool figure);

// Returns one line on why the run diverged or was stopped, and what to do, or "" if it did neither. `folder`
// holds the results; it is empty if there is none.
std::string trouble_of(const FinishedRun& run, const std::filesystem::path& folder, bool can_resume);

}  // namespace gradwire
