// What a run is: made once, by a simulation from its data, by a server from what its clients say or from a
// snapshot, by a client from the server's Start message. Nothing of it changes afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/core/context.h"
#include "config/experiment.h"

namespace gradwire {

struct RunPlan {
  Experiment asked;       // as the operator gave it, paths absolute; empty in clients
  Experiment experiment;  // resolved: step sizes are numbers, paths absolute
  DataSchema schema;
  std::size_t d = 0;
  // Shape (d); zeros after a restart; empty in clients, and in a server whose run has begun.
  std::vector<double> x0;
  std::vector<double> weights;                // shape (n); empty: 1/n each
  std::vector<std::uint64_t> client_samples;  // shape (n), for training; empty if clients.csv needs none
  std::uint64_t samples = 0;                  // of all clients
  CompressorConstants constants;              // of the uplink's compressor
  NeededConstants needed;                     // constants that theory needs
  std::optional<Smoothness> smoothness;       // where they are needed, or cheap
  std::vector<std::string> warnings;

  std::uint32_t n() const { return experiment.clients.count; }
  // Views this plan.
  Theory theory() const;
};

// RoundLimits::max_delay. Empty if the step size does not come from a theorem about delays.
std::optional<std::uint32_t> theory_delay(const RunPlan& plan);

// Sets what follows from experiment and agreement: d and the constants of the compressor. Throws ConfigError,
// DataError.
void see_schema(RunPlan& plan);
void see_compressor(RunPlan& plan);

// A client's own, from what the server's Start message says. Throws ConfigError, DataError.
RunPlan plan_of_start(Experiment resolved, DataSchema schema);

// Who makes a RunContext: a client has no use for a start point and weights, and a server keeps mirrors of
// clients in processes of their own.
enum class Role : std::uint8_t { kSimulation, kServer, kClient };

// The constants of the run as both parts of the algorithm see them. Throws ConfigError.
template <class Real>
std::shared_ptr<RunContext<Real>> make_run_context(const RunPlan& plan, Role role,
                                                   ForRanges ranges = for_ranges_serial);

}  // namespace gradwire
