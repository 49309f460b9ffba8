// Delay-adaptive ASGD — Mishchenko, Bach, Even, Woodworth, arXiv:2206.07638; Koloskova, Stich, Jaggi,
// arXiv:2206.08307: ASGD (asgd.h) with shorter steps along older gradients.
//
//   g       = ∇f_i(x^{t−δ}; ξ)                  client i, at the last x that it received
//   γ_δ     = γ min(1, n/δ)
//   x^{t+1} = x^t − γ_δ g                       server, when g arrives; sends x^{t+1} to i
//
// Theory (all f_i = f, L-smooth, E‖∇f(x; ξ) − ∇f(x)‖² ≤ σ², delays of any length that do not depend on ξ):
// for γ = 1/(4nL), so that γ_δ = 1/(4L max(n, δ)), and Γ the sum of all γ_δ,
//   Σ_t (γ_δ/Γ) E‖∇f(x^{t−δ})‖² ≤ (8/3) Δ⁰/Γ + 2γLσ²,
// derived in tests/algorithms/theory_asynchronous_test.cpp.
#pragma once

#include <algorithm>

#include "algorithms/support/one_gradient.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

struct DelayAdaptiveAsgdParams {
  static constexpr AlgorithmTraits traits =
      one_gradient_traits("delay_adaptive_asgd", "asynchronous SGD with shorter steps along older gradients",
                          "Mishchenko et al., arXiv:2206.07638; Koloskova, Stich, Jaggi, arXiv:2206.08307");
  StepSize step_size;
  GradientParams gradient;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size,
          "gamma of a step along a gradient up to n steps old, else gamma n/delay; theory: 1/(4 n L)");
    GradientParams::fields(self.gradient, visit);
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    resolve_asynchronous_step(step_size, traits.name, theory, warnings, /*of_equal_clients=*/true,
                              [&](const Smoothness& s) { return 1 / (4 * theory.n * s.L); });
  }
};

template <class Real>
struct DelayAdaptiveAsgd {
  using Params = DelayAdaptiveAsgdParams;
  using Client = OneGradientClient<Real>;

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::t, Base::x, Base::run_context;
    Real gamma;

    Server(const RunContext<Real>& s, const Params& p) : Base(s), gamma(Real(*p.step_size.value)) {}

    void apply(Replies<Real> uplinks) {  // one reply
      const std::uint32_t delay = t - uplinks[0].round;
      add_decoded<Real>(uplinks[0].parts[0],
                        -gamma * (Real(run_context.n) / Real(std::max(run_context.n, delay))), x);
      ++t;
    }
  };
};

}  // namespace gradwire
