// Ringmaster ASGD — Maranjyan, Tyurin, Richtárik, arXiv:2501.16168, Algorithm 4; with outdated = "stop",
// Algorithm 5.
//
//   g       = ∇f_i(x^{t−δ}; ξ)                        client i, at the last x that it received
//   δ < R:    x^{t+1} = x^t − γ g                     server, when g arrives; sends x^{t+1} to i
//   δ ≥ R:    g is not used                           server, sends x^t to i
//   stop:     the server sends x^t at once to all clients that work at x^{t−R} or older
//
// R = delay_threshold. Theory (all f_i = f, L-smooth, E‖∇f(x; ξ) − ∇f(x)‖² ≤ σ²): for
// γ = min(1/(2RL), ε/(4Lσ²)), the mean of E‖∇f(x^k)‖² falls to ε (Theorem 4.1). R = max(1, ⌈σ²/ε⌉) takes the
// shortest possible time for any speeds of the clients (Theorem 4.2). γ = 1/(4RL), the step here, is at most
// that γ for every ε ≥ σ²/R; without noise, γ = 1/(2RL).
#pragma once

#include "algorithms/core/params.h"
#include "algorithms/core/vector_ops.h"
#include "algorithms/support/one_gradient.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

struct RingmasterParams {
  static constexpr AlgorithmTraits traits = one_gradient_traits(
      "ringmaster", "asynchronous SGD that stops or ignores gradients at points R steps old",
      "Maranjyan, Tyurin, Richtarik, arXiv:2501.16168");
  StepSize step_size;
  std::uint32_t delay_threshold = 0;
  Choice<OutdatedWords> outdated;
  GradientParams gradient;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size,
          "gamma of a step along one gradient; theory: 1/(4 R L), without batches 1/(2 R L)");
    visit("delay_threshold", self.delay_threshold,
          "R: a gradient at a point R steps old is not used; 0 means the number of clients");
    visit("outdated", self.outdated,
          "stop the computation of such a gradient, or ignore its result: stop | ignore");
    GradientParams::fields(self.gradient, visit);
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (delay_threshold == 0) delay_threshold = theory.n;
    const double noise = theory.batch == 0 ? 2 : 4;
    resolve_asynchronous_step(step_size, traits.name, theory, warnings, /*of_equal_clients=*/true,
                              [&](const Smoothness& s) { return 1 / (noise * delay_threshold * s.L); });
  }
};

template <class Real>
struct Ringmaster {
  using Params = RingmasterParams;

  using Client = OneGradientClient<Real>;

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::t, Base::x;
    Real gamma;
    std::uint32_t R;
    bool stops;

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s), gamma(Real(*p.step_size.value)), R(p.delay_threshold), stops(p.outdated.is("stop")) {}

    bool apply(Replies<Real> uplinks) {  // one reply
      if (t - uplinks[0].round >= R) return false;
      add_decoded<Real>(uplinks[0].parts[0], -gamma, x);
      ++t;
      return true;
    }
    bool superseded(std::uint32_t round) const { return stops && t - round >= R; }
  };
};

}  // namespace gradwire
