// summary.json: what a run was and how it ended, the same for a simulation and for a server
// (docs/results.md).
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
#include "rounds/round_loop.h"

namespace gradwire {

struct Experiment;

// A process that took part.
struct ProcessInfo {
  std::string role;  // "server", "client 3"
  std::uint64_t pid = 0;
  std::string executable;  // its path as the operating system gives it; empty: not known
};

// What the machine used during a run, in joules; empty: not measured.
struct EnergyUse {
  std::optional<double> package, core, memory;
  std::string trouble;  // one line on what is not measured
};

struct Summary {
  const Experiment* experiment = nullptr;  // resolved
  const Experiment* asked = nullptr;       // as the operator gave it; null: not known
  const DataSchema* schema = nullptr;      // of the clients; null: not known
  Theory theory;                           // what the step sizes were computed from
  std::string transport;                   // memory, encoded, tcp
  std::string kernels;                     // that computed gradients: "avx2"; empty: not known
  unsigned threads = 1;
  std::vector<std::string> warnings;
  Outcome outcome = Outcome::kFinished;
  std::uint32_t rounds = 0;             // that were done
  std::optional<RoundRecord> last;      // row of metrics.csv; nothing: there is none
  std::optional<double> loss_at_start;  // of row 0; empty: not evaluated
  double seconds = 0;                   // of all rounds
  double evaluation_seconds = 0;        // of them
  std::vector<ProcessInfo> processes;
  std::optional<EnergyUse> energy;  // nothing: nobody asked
};

// Returns what the summary.json in `folder` says about the data of a problem of that kind: an agreement that
// a model of that run fits. Returns nullopt when there is no such file, or it says nothing.
std::optional<DataSchema> schema_in_summary(const std::filesystem::path& folder, std::string_view kind);

// The warnings include what loss_rise() says.
std::string summary_json(const Summary& summary);

// One line on a run whose loss at the end is above that at its start; empty where it is not, or not known.
std::string loss_rise(std::optional<double> at_start, const std::optional<RoundRecord>& last);

// What it means that this run diverged, and what to try.
std::string divergence(const Experiment& experiment);

// "evaluations took 12 % of 3.2 s"; empty where that is not known.
std::string evaluation_share(double evaluation_seconds, double seconds);

// One line on why the run ended before its last round, by the keys of [run] that say so; empty if it did not.
std::string end_reason(const Experiment& experiment, Outcome outcome, const std::optional<RoundRecord>& last);

// "finished", "reached_target", "stopped", "diverged" or "stalled".
std::string outcome_name(Outcome outcome);

}  // namespace gradwire
