// Common parts of asynchronous algorithms whose clients send one gradient at the x that they received.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "algorithms/core/params.h"
#include "algorithms/core/vector_ops.h"
#include "algorithms/support/gradients.h"
#include "base/config_error.h"

namespace gradwire {

// The treatment of a computation at a point that the server no longer needs.
struct OutdatedWords {
  static constexpr std::array<std::string_view, 2> words{"stop", "ignore"};
};

constexpr AlgorithmTraits one_gradient_traits(std::string_view name, std::string_view summary,
                                              std::string_view reference) {
  return {.name = name,
          .summary = summary,
          .reference = reference,
          .compressor_class = CompressorClass::kEither,
          .partial = false,
          .stochastic = true,
          .asynchronous = true,
          .theory_knows_batches = true};
}

// Does nothing if `step` is a number already. Otherwise sets it to its factor times the theory step
// `of(smoothness)`. Throws ConfigError(algorithm.step_size) if replies are compressed or the smoothness
// constants are unknown. Warns if `of_equal_clients` (the theorem assumes f_i = f for all i) but the clients
// differ.
inline void resolve_asynchronous_step(StepSize& step, std::string_view algorithm, const Theory& theory,
                                      Warnings& warnings, bool of_equal_clients, auto&& of) {
  if (step.value) return;
  if (of_equal_clients && !theory.has_equal_clients)
    warnings.push_back(std::string(algorithm) +
                       ": the theorem of the step size assumes that all clients have the same function, "
                       "but they differ; use ringleader, whose theorem covers this");
  if (theory.compressor.alpha < 1)
    throw ConfigError("algorithm.step_size", "the theorem of " + std::string(algorithm) +
                                                 " covers no compressor; give a number, or compressor = "
                                                 "identity");
  step.resolve(of(need_smoothness(theory, "algorithm.step_size")));
}

// A client that sends g = C(∇f_i(x; ξ)). The request id keys the draws of ξ and C.
template <class Real>
struct OneGradientClient {
  const RunContext<Real>& run_context;
  GradientMessage<Real> message;
  PayloadBuffer<Real> g;

  template <class Params>
  OneGradientClient(const RunContext<Real>& s, const Params& p) : run_context(s), message(p.gradient) {}
  static void fields(auto&, auto&&) {}

  Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
    ClientContext<Real> quiet = ctx;
    quiet.early = nullptr;  // the server may discard the reply, so no value is sent early
    const double loss = message.make(run_context, quiet, ctx.draw, down.parts[0].values, {}, g);
    return reply_of(down, loss, g.view());
  }
  void commit() {}
};

}  // namespace gradwire
