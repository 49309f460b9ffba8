// The plan of a run. A simulation makes it from its data, a server from the reports of its clients or from a
// snapshot, a client from the server's Start message. The plan does not change afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/core/context.h"
#include "config/experiment_spec.h"

namespace gradwire {

struct RunPlan {
  ExperimentSpec asked;       // as the user gave it, paths absolute; empty in clients
  ExperimentSpec experiment;  // resolved: step sizes are numbers, paths absolute
  DataSchema schema;
  std::size_t d = 0;
  // The start point, shape (d). Zeros after a restart. Empty in clients, and in a server whose run has begun.
  std::vector<double> x0;
  std::vector<double> weights;                // shape (n); empty if each is 1/n
  std::vector<std::uint64_t> client_samples;  // shape (n), for training; empty if not needed for clients.csv
  std::uint64_t samples = 0;                  // sum over all clients
  CompressorConstants constants;              // constants of the uplink's compressor
  NeededConstants needed;                     // constants that theory needs
  std::optional<Smoothness> smoothness;       // set if theory needs it, or if it is cheap
  std::vector<std::string> warnings;

  std::uint32_t n() const { return experiment.clients.count; }
  // Returns the inputs of theory. They refer to this plan.
  Theory theory() const;
};

// Returns RoundLimits::max_delay, or nullopt if the step size does not come from a theorem about delays.
std::optional<std::uint32_t> theory_delay(const RunPlan& plan);

// Set d and the compressor's constants, which follow from the experiment and the data schema. Throw
// ConfigError, DataError.
void see_schema(RunPlan& plan);
void see_compressor(RunPlan& plan);

// Makes the plan of a client from the server's Start message. Throws ConfigError, DataError.
RunPlan plan_of_start(ExperimentSpec resolved, DataSchema schema);

// The process that makes a RunContext. A client needs no start point and no weights; a server keeps
// replicas of the states of its clients, which are separate processes.
enum class Role : std::uint8_t { kSimulation, kServer, kClient };

// Returns the run context, which both parts of the algorithm use. Throws ConfigError.
template <class Real>
std::shared_ptr<RunContext<Real>> make_run_context(const RunPlan& plan, Role role,
                                                   ForRanges ranges = for_ranges_serial);

}  // namespace gradwire
