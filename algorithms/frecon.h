// FRECON — Zhao, Burlachenko, Li, Richtárik, arXiv:2112.13097, Algorithm 2.
//
//   q_i = C(∇f_i(x^t) − ∇f_i(x^{t−1})),  u_i = C(∇f_i(x^t) − h_i)          client i, sends q_i, u_i
//   h_i ← h_i + α u_i
//   g^t = mean_{i∈S} q_i + (1−λ) g^{t−1} + λ (mean_{i∈S} u_i + h)          server
//   h ← h + (α/n) Σ_{i∈S} u_i,  x^{t+1} = x^t − γ g^t                      sends x^{t+1} and x^t
//
// x^{−1} = x^0; h_i, h and g start at 0. Theory, with L = L_max:
//   α = 1/(1+ω),  λ = |S|/(2(1+ω) n),  γ = 1/(L (1 + √(10 (1+ω)² n)/|S|)).
// With client weights w_i, the means over S are of n w_i q_i and n w_i u_i, and L is that of the functions
// n w_i f_i. For a smaller λ, γ is the step for the larger ω that gives this λ.
#pragma once

#include "algorithms/diana.h"

namespace gradwire {

struct FreconParams : ShiftParams {
  static constexpr AlgorithmTraits traits{
      .name = "frecon",
      .summary = "recursive gradient estimates with client-variance reduction",
      .reference = "Zhao, Burlachenko, Li, Richtarik, arXiv:2112.13097",
      .compressor_class = CompressorClass::kUnbiased,
      .client_state = ClientState::kMirrored,
      .theory_knows_sampling = true,
      .adds_replies = true,
  };
  std::optional<double> lambda;

  static void fields(auto& self, auto&& visit) {
    ShiftParams::fields(self, visit);
    visit("lambda", self.lambda, "weight of the fresh estimate in g; theory: |S|/(2(1+omega)n)");
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    const Assumptions assume(traits.name, step_size, theory, warnings);
    resolve_alpha(theory, assume);
    const double S = replies_of(theory);
    const double most = S / (2 * (1 + theory.compressor.omega) * theory.n);
    if (!lambda) lambda = most;
    check_probability(*lambda, "lambda");
    assume.at_most("lambda", *lambda, most, "|S|/(2 (1 + omega) n)");
    if (step_size.value) return;
    const double spread = 1 + counted_as(counted(theory), S / (2 * *lambda * theory.n) - 1).omega;
    const double L = need_smoothness(theory, "algorithm.step_size").L_max_weighted();
    step_size.resolve(1 / (L * (1 + std::sqrt(10 * spread * spread * theory.n) / S)));
  }
};

template <class Real>
struct Frecon {
  using Params = FreconParams;
  static constexpr std::size_t kPartsUp = 2, kPartsDown = 2;

  struct Client : ShiftClient<Real> {
    using Base = ShiftClient<Real>;
    PayloadBuffer<Real> q_i;

    Client(const RunContext<Real>& s, const Params& p) : Base(s, p) {}

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values, x_prev = down.parts[1].values;
      Vec<Real>& grad = ctx.scratch.vec(0, x.size());
      Vec<Real>& before = ctx.scratch.vec(1, x.size());
      const double loss = ctx.oracle.two_gradients(x, x_prev, {}, grad, before).x;
      const auto subtract = [&](std::size_t first, std::size_t end) {
        for (std::size_t j = first; j < end; ++j) before[j] = grad[j] - before[j];
      };
      compress_made(ctx.compressor, before, ctx.draw_key(down.round, 0), ctx.scratch, q_i, subtract);
      compress_shifted<Real>(ctx.compressor, grad, this->h_i, ctx.draw_key(down.round, 1), ctx.scratch,
                             this->m_i);
      return reply_of(down, loss, Parts<Real>{q_i.view(), this->m_i.view()});
    }
    void commit(const Uplink<Real>& used) { this->learn(used.parts[1]); }
  };

  struct Server : ShiftServer<Real> {
    using Base = ShiftServer<Real>;
    using Base::run_context, Base::t, Base::x, Base::g;
    Real lambda;
    Vec<Real> x_prev;

    Server(const RunContext<Real>& s, const Params& p) : Base(s, p), lambda(Real(*p.lambda)), x_prev(s.x0) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.g);
      visit(self.x_prev);
    }

    Downlink<Real> broadcast() const {
      return {t, 0, {Payload<Real>::dense(x), Payload<Real>::dense(x_prev)}};
    }
    void apply(Replies<Real> uplinks) {
      for (std::size_t j = 0; j < x.size(); ++j) g[j] = (1 - lambda) * g[j] + lambda * this->h[j];
      add_mean_of_replies<Real>(run_context, uplinks, 0, Real(1), g);
      add_mean_of_replies<Real>(run_context, uplinks, 1, lambda, g);
      this->learn(uplinks, 1);
      x_prev = x;
      axpy<Real>(-this->gamma, g, x);
      ++t;
    }
  };
};

}  // namespace gradwire
