// The closed set of algorithms as the rest of the program sees it: their traits and parameters, and who makes
// their parts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/core/client_server.h"
#include "algorithms/core/context.h"
#include "algorithms/core/spec.h"
#include "algorithms/core/traits.h"
#include "algorithms/support/symmetric.h"

namespace gradwire {

struct ParameterHelp {
  std::string name, fallback, meaning;
};

struct AlgorithmInfo {
  AlgorithmTraits traits;
  std::vector<ParameterHelp> parameters;  // with step_size first
};

// A parameter that a spec gives, and that has no effect with the value of another one (Constraints::idle_by).
struct IdleParameter {
  std::string key, by;
  Value value;               // of `by`
  bool has_default = false;  // the parameter
  bool monitored = false;    // has an effect in a run with the monitor
};
// Throws ConfigError as check_algorithm() does.
std::vector<IdleParameter> idle_parameters(const AlgorithmSpec& spec);

// Length of the vectors that an algorithm compresses, for models in R^d: d, or the entries of a triangle of a
// Hessian.
std::size_t compressed_dim(std::string_view algorithm, std::size_t d);
// The compressor of a spec, in a run of n clients in R^d. Throws ConfigError.
Compressor uplink_compressor(const AlgorithmSpec& spec, std::size_t d, std::uint32_t n);
// The compressor of its parameter `compressor_down`; nothing for algorithms that broadcast whole vectors.
std::optional<Compressor> downlink_compressor(const AlgorithmSpec& spec, std::size_t d);

// All algorithms, in the order of the list.
std::span<const AlgorithmInfo> all_algorithms();
// Throws ConfigError("algorithm.name") that names the nearest known algorithm.
const AlgorithmInfo& find_algorithm(std::string_view name);

// The parameter `paths`: the share of the paths through a network that clients go back along; 1 also where
// the algorithm has no such parameter.
double paths_of(const AlgorithmSpec& spec);

// Checks everything that can be checked without data: name, parameter names and values, the compressor's
// spelling, batch and participation. Throws ConfigError with the key at fault.
void check_algorithm(const AlgorithmSpec& spec);

// Returns the constants that resolve() will read from theory.smoothness. Needs no data.
NeededConstants needed_constants(const AlgorithmSpec& spec);

// The spec with every number spelled out (17 digits): step sizes, the algorithm's defaults, counts of the
// compressor. Adds a line to `warnings` for each assumption of the theorem that does not hold. Throws
// ConfigError. Idempotent.
AlgorithmSpec resolve(const AlgorithmSpec& spec, const Theory& theory, std::vector<std::string>& warnings);
// The same with this uplink compressor instead of spec.compressor: for a user's own compressor.
AlgorithmSpec resolve(const AlgorithmSpec& spec, const Compressor& compressor, const Theory& theory,
                      std::vector<std::string>& warnings);

// The Lyapunov function of the theorem that covers the run of a resolved spec, with what theory says of the
// problem. `theory_step`: what the theorem's step would be; 0: not known. Throws ConfigError("run.monitor")
// where there is none.
struct Monitored {
  Lyapunov lyapunov;
  double step = 0, theory_step = 0;
};
Monitored monitored(const AlgorithmSpec& resolved, const Theory& theory);

// The traits of the user's algorithm, or of the algorithm that run_context.algorithm names.
template <class Real>
const AlgorithmTraits& traits_of(const RunContext<Real>& run_context) {
  return run_context.custom_algorithm ? run_context.custom_algorithm->traits
                                      : find_algorithm(run_context.algorithm.name).traits;
}

// Whether replies of a round may arrive as a sum: a server that weights clients, or keeps a copy of each
// client's state, needs them one by one.
template <class Real>
bool takes_sums(const RunContext<Real>& run_context) {
  const AlgorithmTraits& traits = traits_of(run_context);
  const bool mirrors = run_context.keep_mirrors && has(traits.client_state, ClientState::kMirrored);
  return traits.adds_replies && run_context.weights.empty() && !mirrors;
}

// REQUIRES: run_context->algorithm is resolved.
template <class Real>
std::unique_ptr<ServerAlgorithm<Real>> make_server(std::shared_ptr<const RunContext<Real>> run_context);
template <class Real>
std::unique_ptr<ClientAlgorithm<Real>> make_client(std::shared_ptr<const RunContext<Real>> run_context);

}  // namespace gradwire
