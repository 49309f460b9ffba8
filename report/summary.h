// summary.json: the facts of a run and its outcome, the same for a simulation and for a server
// (docs/reference/results.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/core/spec.h"
#include "engine/problems/problem_type.h"
#include "report/energy.h"
#include "rounds/round_loop.h"

namespace gradwire {

struct ExperimentSpec;

// A process that took part in the run.
struct ProcessInfo {
  std::string role;  // "server", "client 3"
  std::uint64_t pid = 0;
  std::string executable;  // its path from the operating system; empty if not known
};

// The energy of the machine during a run.
struct EnergyUse {
  Energy energy;
  std::string trouble;  // one line on what is not measured
};

struct Summary {
  const ExperimentSpec* experiment = nullptr;  // resolved
  const ExperimentSpec* asked = nullptr;       // as the user gave it; null if not known
  const DataSchema* schema = nullptr;          // schema of the clients; null if not known
  Theory theory;                               // inputs of the step sizes
  std::string transport;                       // memory, encoded, tcp, tls
  std::string kernels;                         // kernels that computed gradients: "avx2"; empty if not known
  unsigned threads = 1;
  std::vector<std::string> warnings;
  Outcome outcome = Outcome::kFinished;
  std::uint32_t rounds = 0;             // number of completed rounds
  std::optional<RoundRecord> last;      // last row of metrics.csv; empty if it has no row
  std::optional<double> loss_at_start;  // loss in row 0; empty if not evaluated
  double seconds = 0;                   // time of all rounds
  double evaluation_seconds = 0;        // the part of `seconds` for evaluations
  std::vector<ProcessInfo> processes;
  std::optional<EnergyUse> energy;  // empty if the user did not ask for it
};

// Returns the data schema in the summary.json of `folder`, which a model of that run fits. Returns nullopt if
// there is no such file, or if it has no schema for problem type `kind`.
std::optional<DataSchema> schema_in_summary(const std::filesystem::path& folder, std::string_view kind);

// Returns the text of summary.json. Its warnings include the line of loss_rise().
std::string summary_json(const Summary& summary);

// Returns what to do about a step size of a resolved experiment that is above theory's: "algorithm.step_size
// = 5 is above theory's 0.25; write step_size = \"theory\"". Returns "" if there is none, or theory has no
// step.
std::string step_above_theory(const ExperimentSpec& resolved, const Theory& theory);

// Returns a line if the loss at the end of a run is above the loss at its start, else "". Also returns "" if
// one of them is not known.
std::string loss_rise(std::optional<double> at_start, const std::optional<RoundRecord>& last,
                      const ExperimentSpec& resolved, const Theory& theory);

// Returns a line that explains why a run diverged and what to try.
std::string divergence(const ExperimentSpec& resolved, const Theory& theory);

// Returns "evaluations took 12 % of 3.2 s", or "" if that is not known.
std::string evaluation_share(double evaluation_seconds, double seconds);

// Returns one line that says why the run ended before its last round, with the key of [run] that caused it.
// Empty if the run did not end early.
std::string end_reason(const ExperimentSpec& experiment, Outcome outcome,
                       const std::optional<RoundRecord>& last);

// Returns "finished", "reached_target", "stopped", "diverged" or "stalled".
std::string outcome_name(Outcome outcome);

}  // namespace gradwire
