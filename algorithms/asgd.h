// ASGD: asynchronous SGD with a constant step — as in Koloskova, Stich, Jaggi, arXiv:2206.08307, Algorithm 1.
//
//   g       = ∇f_i(x^{t−δ}; ξ)       client i, at the last x that it received
//   x^{t+1} = x^t − γ g              server, when g arrives; sends x^{t+1} to i
//
// Theory (all f_i = f, L-smooth, E‖∇f(x; ξ) − ∇f(x)‖² ≤ σ², every δ ≤ τ = max_delay): for γ ≤ 1/(2L(τ+1))
//   avg_t E‖∇f(x^t)‖² ≤ 2Δ⁰/(γT) + 2γLσ²,
// derived in tests/algorithms/theory_asynchronous_test.cpp. With n clients of equal speed, τ = n − 1. A slow
// client has proportionally longer delays. The theorem does not hold if a delay exceeds max_delay.
#pragma once

#include "algorithms/support/one_gradient.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

struct AsgdParams {
  static constexpr AlgorithmTraits traits =
      one_gradient_traits("asgd", "asynchronous SGD: every gradient makes a step, however old its point is",
                          "Koloskova, Stich, Jaggi, arXiv:2206.08307");
  StepSize step_size;
  std::uint32_t max_delay = 0;
  GradientParams gradient;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of a step along one gradient; theory: 1/(2 L (max_delay + 1))");
    visit("max_delay", self.max_delay,
          "tau: age in steps of the oldest gradient that theory's step allows; 0 means n - 1, the age for n "
          "clients of equal speed",
          Constraints{.idle_by = idle_if(self.step_size.value.has_value(), "step_size")});
    GradientParams::fields(self.gradient, visit);
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (max_delay == 0) max_delay = theory.n - 1;
    resolve_asynchronous_step(step_size, traits.name, theory, warnings, /*of_equal_clients=*/true,
                              [&](const Smoothness& s) { return 1 / (2 * s.L * (max_delay + 1.0)); });
  }
};

template <class Real>
struct Asgd {
  using Params = AsgdParams;
  using Client = OneGradientClient<Real>;

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::t, Base::x;
    Real gamma;

    Server(const RunContext<Real>& s, const Params& p) : Base(s), gamma(Real(*p.step_size.value)) {}

    void apply(Replies<Real> uplinks) {  // one reply
      add_decoded<Real>(uplinks[0].parts[0], -gamma, x);
      ++t;
    }
  };
};

}  // namespace gradwire
