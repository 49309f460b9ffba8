// What asynchronous algorithms share whose clients send one gradient at the x that they were given.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "algorithms/core/params.h"
#include "algorithms/core/vector_ops.h"
#include "algorithms/support/gradients.h"
#include "base/config_error.h"

namespace gradwire {

// What becomes of a computation at a point that the server has no use for any more.
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

// gamma = factor * of(the constants), unless it is a number already. Throws ConfigError(algorithm.step_size)
// where the replies are compressed, or they are not known. Warns where clients differ, and the theorem
// assumes f_i = f (`of_equal_clients`).
inline void resolve_asynchronous_step(StepSize& step, std::string_view algorithm, const Theory& theory,
                                      Warnings& warnings, bool of_equal_clients, auto&& of) {
  if (step.value) return;
  if (of_equal_clients && !theory.has_equal_clients)
    warnings.push_back(std::string(algorithm) +
                       ": the theorem behind the step size assumes that all clients have the same function, "
                       "and these differ; ringleader has a theorem for clients that differ");
  if (theory.compressor.alpha < 1)
    throw ConfigError("algorithm.step_size", "the theorem of " + std::string(algorithm) +
                                                 " knows no compressor; give a number, or compressor = "
                                                 "identity");
  step.resolve(of(need_smoothness(theory, "algorithm.step_size")));
}

// g = C(∇f_i(x; ξ)), ξ and C keyed by the request id.
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
    quiet.early = nullptr;  // a server that may have no use for the reply wants none of it before it is whole
    const double loss = message.make(run_context, quiet, ctx.draw, down.parts[0].values, {}, g);
    return reply_of(down, loss, g.view());
  }
  void commit() {}
};

}  // namespace gradwire
