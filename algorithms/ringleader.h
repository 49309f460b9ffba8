// Ringleader ASGD — Maranjyan, Richtárik, arXiv:2509.22860, Algorithm 1: asynchronous SGD for clients with
// different data. A step uses the mean over all clients, whatever their speeds, and every gradient is used.
//
//   g = ∇f_i(x_i; ξ)                            client i, repeatedly at the last x_i that it received
//   when g arrives (server):
//   phase 1, until b_i ≥ 1 for all i:           G_i ← G_i + g,  b_i ← b_i + 1;  the last g starts phase 2
//   phase 2, i has made no step in it:          G_i ← G_i + g,  b_i ← b_i + 1  (not again for the g above),
//     x^{t+1} = x^t − γ (1/n) Σ_j G_j/b_j,        and x_i = x^{t+1} is sent to i
//   phase 2, i has made its step:               G⁺_i ← G⁺_i + g,  b⁺_i ← b⁺_i + 1
//   after n steps:  G ← G⁺,  b ← b⁺,  G⁺ ← 0,  b⁺ ← 0,  phase 1
//
// So every gradient is at most τ = 2n − 2 steps old. Theory (E‖∇f_i(x; ξ) − ∇f_i(x)‖² ≤ σ²): for
// γ = 1/(8nL~), which is the paper's step for every ε ≥ 5σ²/(4n),
//   avg_t E‖∇f(x^t)‖² ≤ 2Δ⁰/(γT) + (γL(3τ + 2) + 2(γL~τ)²) σ²/n,
// and without noise avg_t ‖∇f(x^t)‖² ≤ 2Δ⁰/(γT) for γ = 1/(L + τL~). Both bounds are derived in
// tests/algorithms/theory_ringleader_test.cpp. The server keeps up to 3n vectors of length d.
#pragma once

#include <algorithm>
#include <vector>

#include "algorithms/support/one_gradient.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

struct RingleaderParams {
  static constexpr AlgorithmTraits traits = one_gradient_traits(
      "ringleader", "asynchronous SGD along the mean over all clients, whose data may differ",
      "Maranjyan, Richtarik, arXiv:2509.22860");
  StepSize step_size;
  GradientParams gradient;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size,
          "gamma of a step along the mean over clients; theory: 1/(8 n L~), without batches 1/(L + (2n - 2) "
          "L~)");
    GradientParams::fields(self.gradient, visit);
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    resolve_asynchronous_step(step_size, traits.name, theory, warnings, /*of_equal_clients=*/false,
                              [&](const Smoothness& s) {
                                if (theory.batch > 0) return 1 / (8.0 * theory.n * s.L_tilde());
                                return 1 / (s.L + (2.0 * theory.n - 2) * s.L_tilde());
                              });
  }
};

template <class Real>
struct Ringleader {
  using Params = RingleaderParams;
  using Client = OneGradientClient<Real>;

  // The sum G_i and the number b_i of gradients, by client.
  struct GradientTable {
    std::vector<Vec<Real>> G;
    std::vector<std::uint32_t> b;

    explicit GradientTable(std::uint32_t n) : G(n), b(n) {}
    static void fields(auto& self, auto&& visit) {
      visit(self.G);
      visit(self.b);
    }
    void add(const UplinkView<Real>& up) {
      Vec<Real>& sum = G[up.client];
      sum.resize(up.parts[0].dim);
      add_decoded<Real>(up.parts[0], 1, sum);
      ++b[up.client];
    }
    void clear() {
      for (Vec<Real>& sum : G) std::fill(sum.begin(), sum.end(), Real(0));
      std::fill(b.begin(), b.end(), 0u);
    }
  };

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::run_context, Base::t, Base::x;
    Real gamma;
    Vec<Real> x_first;                   // x^0
    std::vector<Vec<Real>> x_of;         // x_i; empty means x^0
    std::vector<std::uint32_t> t_of;     // x_i = x^{t_i}
    GradientTable now, next;             // G, b and G⁺, b⁺
    std::vector<std::uint32_t> stepped;  // 1 if the client has made its step of phase 2
    std::uint32_t steps = 0;             // steps made in phase 2; 0 in phase 1
    Vec<Real> mean;                      // (1/n) Σ G_j/b_j, in phase 2

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s),
          gamma(Real(*p.step_size.value)),
          x_first(s.x0),
          x_of(s.n),
          t_of(s.n),
          now(s.n),
          next(s.n),
          stepped(s.n),
          mean(s.d) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.x_first);
      visit(self.x_of);
      visit(self.t_of);
      GradientTable::fields(self.now, visit);
      GradientTable::fields(self.next, visit);
      visit(self.stepped);
      visit(self.steps);
      visit(self.mean);
    }

    Downlink<Real> work(ClientId i) const {
      return {t_of[i], 0, {Payload<Real>::dense(x_of[i].empty() ? x_first : x_of[i])}};
    }
    bool apply(Replies<Real> uplinks) {  // one reply
      const UplinkView<Real>& up = uplinks[0];
      const ClientId i = up.client;
      if (up.round != t_of[i]) return false;
      if (stepped[i]) {
        next.add(up);
        return true;
      }
      if (steps == 0) {
        now.add(up);
        if (std::find(now.b.begin(), now.b.end(), 0u) != now.b.end()) return true;
        std::fill(mean.begin(), mean.end(), Real(0));
        for (ClientId j = 0; j < run_context.n; ++j) add_share(j, 1);
      } else {
        add_share(i, -1);
        now.add(up);
        add_share(i, 1);
      }
      step(i);
      return true;
    }

   private:
    void add_share(ClientId j, Real sign) {
      axpy<Real>(sign / (Real(run_context.n) * Real(now.b[j])), now.G[j], mean);
    }
    void step(ClientId i) {
      axpy<Real>(-gamma, mean, x);
      ++t;
      x_of[i] = x;
      t_of[i] = t;
      stepped[i] = 1;
      if (++steps < run_context.n) return;
      std::swap(now, next);
      next.clear();
      std::fill(stepped.begin(), stepped.end(), 0u);
      steps = 0;
    }
  };
};

}  // namespace gradwire
