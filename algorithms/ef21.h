// EF21 — Richtárik, Sokolov, Fatkhullin, arXiv:2106.05203, Algorithm 2.
//
//   c_i^t   = C(∇f_i(x^t) − g_i),  g_i ← g_i + c_i^t      client i, sends c_i^t
//   g^t     = g^{t−1} + (1/n) Σ_{i∈S} c_i^t               server
//   x^{t+1} = x^t − γ g^t                                 server, sends x^{t+1}
//
// Theory, with θ = 1 − √(1−α), ξ(α) = √(1−α)/θ and G = (1/n) Σ ‖g_i − ∇f_i(x)‖²:
//   Theorem 1: γ = 1/(L + L~ ξ(α)); then avg_t ‖∇f(x^t)‖² ≤ 2 Δ⁰/(γ T) + G⁰/(θ T).
//   Theorem 2, under the PL condition with mu: γ = min(1/(L + L~ √2 ξ(α)), θ/(2μ)); then
//   Ψ^T ≤ (1−γμ)^T Ψ⁰ with Ψ = f − f* + (γ/θ) G.
#pragma once

#include "algorithms/support/ef21_core.h"

namespace gradwire {

struct Ef21Params : Ef21PlParams {
  static constexpr AlgorithmTraits traits{
      .name = "ef21",
      .summary = "error feedback: compressed differences to the gradient estimates g_i",
      .reference = "Richtarik, Sokolov, Fatkhullin, arXiv:2106.05203",
      .compressor_class = CompressorClass::kContractive,
      .strict = true,
      .client_state = ClientState::kMirrored,
      .adds_replies = true,
  };
  void resolve(const Theory& theory, Warnings& warnings) {
    const double pl = mu.resolve(theory);
    resolve_step(theory, warnings, [&] {
      return ef21_step(theory, need_smoothness(theory, "algorithm.step_size").L_tilde(), pl);
    });
  }
  // Returns f − f* + (γ/(2θ)) G, which decreases by at least (γ/2) ‖∇f‖² in a round. Under the PL condition,
  // returns the function Ψ of Theorem 2.
  Lyapunov lyapunov(const Theory& theory) const {
    schedule.check_monitor();
    const double gamma = *step_size.value, pl = mu.or_none();
    return {.gap = 1,
            .shifts = gamma * error_weight(pl) / (2 * ErrorFeedback(theory.compressor.alpha).theta),
            .of_round = true,
            .rate = 1 - std::min(1.0, gamma * pl)};
  }
};

template <class Real>
struct Ef21 {
  using Params = Ef21Params;
  using Client = Ef21CoreClient<Real>;
  using Server = Ef21CoreServer<Real>;
};

}  // namespace gradwire
