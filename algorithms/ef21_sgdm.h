// EF21-SGDM — Fatkhullin, Tyurin, Richtárik, arXiv:2305.15155, Algorithm 1.
//
//   v_i ← (1−η) v_i + η ∇f_i(x^t; ξ_i^t)                  client i; v_i^0 = ∇f_i(x^0)
//   c_i = C(v_i − g_i),  g_i ← g_i + c_i                  sends c_i
//   g   ← g + (1/n) Σ_{i∈S} c_i,  x^{t+1} = x^t − γ g      server, sends x^{t+1}
//
// Theory: γ = min(α/(20 L~), η/(7 L)) (Theorem 3); batches of one sample suffice.
#pragma once

#include <algorithm>

#include "algorithms/support/ef21_core.h"

namespace gradwire {

struct Ef21SgdmParams : Ef21CoreParams {
  static constexpr AlgorithmTraits traits{
      .name = "ef21_sgdm",
      .summary = "EF21 on momentum v_i of minibatch gradients",
      .reference = "Fatkhullin, Tyurin, Richtarik, arXiv:2305.15155",
      .compressor_class = CompressorClass::kContractive,
      .strict = true,
      .stochastic = true,
      .client_state = ClientState::kMirrored | ClientState::kPrivate,
      .theory_knows_batches = true,
      .adds_replies = true,
  };
  double eta = 0.1;

  static void fields(auto& self, auto&& visit) {
    Ef21CoreParams::fields(self, visit);
    visit("eta", self.eta, "weight of the new gradient in the momentum v_i");
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    check_probability(eta, "eta");
    resolve_step(theory, warnings, [&] {
      const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
      return std::min(theory.compressor.alpha / (20 * s.L_tilde()), eta / (7 * s.L));
    });
  }
};

template <class Real>
struct Ef21Sgdm {
  using Params = Ef21SgdmParams;

  struct Client : Ef21CoreClient<Real> {
    using Base = Ef21CoreClient<Real>;
    Real eta;
    Vec<Real> v_i, v_next;  // v_next is the proposal

    Client(const RunContext<Real>& s, const Params& p) : Base(s, p), eta(Real(p.eta)) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.v_i);
    }

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      v_next.resize(x.size());
      double loss = 0;
      if (v_i.empty()) {
        loss = ctx.oracle.loss_and_gradient(x, {}, v_next);
      } else {
        Vec<Real>& grad = ctx.scratch.vec(0, x.size());
        loss = gradient_at(this->run_context, ctx, down.round, x, grad);
        for (std::size_t j = 0; j < x.size(); ++j) v_next[j] = (1 - eta) * v_i[j] + eta * grad[j];
      }
      Vec<Real>& r = ctx.scratch.vec(1, x.size());
      r = v_next;
      return this->propose(r, loss, down, ctx);
    }
    void commit() {
      add_decoded<Real>(this->c_i.view(), Real(1), this->g_i);
      v_i.swap(v_next);
    }
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>& ctx) {
      Base::adopt(resync, ctx);
      v_i.clear();  // only the client has it, so the momentum restarts
    }
  };
  using Server = Ef21CoreServer<Real>;
};

}  // namespace gradwire
