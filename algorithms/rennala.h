// Rennala SGD — Tyurin, Richtárik, arXiv:2305.12387, Algorithm 4: a minibatch of the first S gradients at
// x^t, from any clients.
//
//   g = ∇f_i(x; ξ)                                      client i, at the last x that it received
//   x = x^t:   ḡ ← ḡ + g                                server, when g arrives; sends x^t to i
//   else:      g is not used                            server, sends x^t to i
//   after S gradients at x^t:  x^{t+1} = x^t − (γ/S) ḡ,  ḡ ← 0
//   stop:      the server sends x^{t+1} at once to all clients that still work at x^t
//
// S = gradients. Theory (all f_i = f, L-smooth, E‖∇f(x; ξ) − ∇f(x)‖² ≤ σ²): for γ ≤ 1/L
//   avg_t E‖∇f(x^t)‖² ≤ 2Δ⁰/(γT) + γLσ²/S,
// so γ = min(1/L, εS/(2Lσ²)) reaches ε in at most 24 LΔ⁰/ε steps, and S = max(1, ⌈σ²/ε⌉) takes the shortest
// possible time for any fixed speeds (Theorems 7.4 and 7.5). γ = 1/(2L), the step here, is at most that γ for
// every ε ≥ σ²/S; without noise, γ = 1/L.
#pragma once

#include <algorithm>

#include "algorithms/support/one_gradient.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

struct RennalaParams {
  static constexpr AlgorithmTraits traits = one_gradient_traits(
      "rennala", "asynchronous minibatches: the first S gradients at x, from any clients, make a step",
      "Tyurin, Richtarik, arXiv:2305.12387");
  StepSize step_size;
  std::uint32_t gradients = 0;
  Choice<OutdatedWords> outdated{1};
  GradientParams gradient;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size,
          "gamma of a step along the mean of S gradients; theory: 1/(2 L), without batches 1/L");
    visit("gradients", self.gradients,
          "S: gradients at one x that make a step; 0 means the number of clients");
    visit("outdated", self.outdated,
          "stop computations at an older x, or ignore their results: stop | ignore");
    GradientParams::fields(self.gradient, visit);
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (gradients == 0) gradients = theory.n;
    resolve_asynchronous_step(
        step_size, traits.name, theory, warnings, /*of_equal_clients=*/true,
        [&](const Smoothness& s) { return theory.batch == 0 ? 1 / s.L : 1 / (2 * s.L); });
  }
};

template <class Real>
struct Rennala {
  using Params = RennalaParams;
  using Client = OneGradientClient<Real>;

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::t, Base::x;
    Real gamma;
    std::uint32_t S, count = 0;  // gradients per step, and received so far
    bool stops;
    Vec<Real> sum;  // ḡ

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s), gamma(Real(*p.step_size.value)), S(p.gradients), stops(p.outdated.is("stop")), sum(s.d) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.sum);
      visit(self.count);
    }

    bool apply(Replies<Real> uplinks) {  // one reply
      if (uplinks[0].round != t) return false;
      add_decoded<Real>(uplinks[0].parts[0], 1, sum);
      if (++count < S) return true;
      for (Real& v : sum) v *= 1 / Real(S);
      axpy<Real>(-gamma, sum, x);
      std::fill(sum.begin(), sum.end(), Real(0));
      count = 0;
      ++t;
      return true;
    }
    bool superseded(std::uint32_t round) const { return stops && round != t; }
  };
};

}  // namespace gradwire
