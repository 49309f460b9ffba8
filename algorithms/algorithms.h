// The closed set of algorithms, as the rest of the program sees it: traits, parameters, and factories of the
// client and server parts.
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
  std::string old_name = {};  // Constraints::old_key; empty if the parameter was not renamed
};

struct AlgorithmInfo {
  AlgorithmTraits traits;
  std::vector<ParameterHelp> parameters;  // step_size comes first
};

// A parameter that a spec sets although the value of another parameter makes it ineffective
// (Constraints::idle_by).
struct IdleParameter {
  std::string key, by;
  Value value;               // the value of `by`
  bool has_default = false;  // the parameter has its default value
  bool monitored = false;    // the run's monitor uses the parameter
};
// Returns the ineffective parameters of a spec. Throws ConfigError as check_algorithm() does.
std::vector<IdleParameter> idle_parameters(const AlgorithmSpec& spec);

// Returns the length of the vectors that an algorithm compresses for models in R^d: d, or the number of
// entries in the upper triangle of a Hessian.
std::size_t compressed_dim(std::string_view algorithm, std::size_t d);
// Returns the compressor of a spec for a run of n clients in R^d. Throws ConfigError.
Compressor uplink_compressor(const AlgorithmSpec& spec, std::size_t d, std::uint32_t n);
// Returns the compressor of the parameter `compressor_down`, or nullopt if the algorithm broadcasts whole
// vectors.
std::optional<Compressor> downlink_compressor(const AlgorithmSpec& spec, std::size_t d);

// The name of the algorithm, and of the compressor, that a program brings.
inline constexpr std::string_view kCustomName = "custom";

// Returns all algorithms in the order of the list.
std::span<const AlgorithmInfo> all_algorithms();
// Returns the algorithm of this name. Throws ConfigError("algorithm.name") that suggests the nearest known
// name.
const AlgorithmInfo& find_algorithm(std::string_view name);

// Returns the parameter `backprop_fraction`: the share of the paths through a network that the backward pass
// follows. Returns 1 if the algorithm has no such parameter.
double backprop_fraction_of(const AlgorithmSpec& spec);

// Checks everything that needs no data: name, names and values of parameters, spelling of the compressor,
// batch and participation. Throws ConfigError with the wrong key.
void check_algorithm(const AlgorithmSpec& spec);

// Returns the constants that resolve() will read from theory.smoothness. Needs no data.
NeededConstants needed_constants(const AlgorithmSpec& spec);

// Returns the spec with every number written out (17 digits): step sizes, the algorithm's defaults, counts of
// the compressor. Adds a line to `warnings` for each assumption of the theorem that does not hold. Throws
// ConfigError. Idempotent.
AlgorithmSpec resolve(const AlgorithmSpec& spec, const Theory& theory, std::vector<std::string>& warnings);
// Resolves with this uplink compressor in place of spec.compressor, for a custom compressor.
AlgorithmSpec resolve(const AlgorithmSpec& spec, const Compressor& compressor, const Theory& theory,
                      std::vector<std::string>& warnings);

// A step size of a resolved spec, and the number that theory gives for it.
struct TheoryStep {
  std::string key;  // "step_size", "local_step_size"
  double value = 0, theory = 0;
};
// Returns the step sizes of a resolved spec for which theory has a number, given its other parameters.
std::vector<TheoryStep> theory_steps(const AlgorithmSpec& resolved, const Theory& theory);

// The Lyapunov function of the theorem that covers a run, its step size, and the step size that the theorem
// gives. `theory_step` is 0 if the smoothness constants are unknown.
struct Monitored {
  Lyapunov lyapunov;
  double step = 0, theory_step = 0;
};
// Returns the Lyapunov function for a resolved spec. Throws ConfigError("run.monitor") if no theorem covers
// the run.
Monitored monitored(const AlgorithmSpec& resolved, const Theory& theory);

// Returns the traits of the custom algorithm, or of the algorithm that run_context.algorithm names.
template <class Real>
const AlgorithmTraits& traits_of(const RunContext<Real>& run_context) {
  return run_context.custom_algorithm ? run_context.custom_algorithm->traits
                                      : find_algorithm(run_context.algorithm.name).traits;
}

// Returns whether the replies of a round may arrive as a sum. A server that weights clients, or keeps
// copies of their states, needs the replies one by one.
template <class Real>
bool takes_sums(const RunContext<Real>& run_context) {
  const AlgorithmTraits& traits = traits_of(run_context);
  const bool has_replicas =
      run_context.keep_client_state_replicas && has(traits.client_state, ClientState::kMirrored);
  return traits.adds_replies && run_context.weights.empty() && !has_replicas;
}

// Make the parts of the run's algorithm. REQUIRES: run_context->algorithm is resolved.
template <class Real>
std::unique_ptr<ServerAlgorithm<Real>> make_server(std::shared_ptr<const RunContext<Real>> run_context);
template <class Real>
std::unique_ptr<ClientAlgorithm<Real>> make_client(std::shared_ptr<const RunContext<Real>> run_context);

}  // namespace gradwire
