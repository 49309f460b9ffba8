// MARINA — Gorbunov, Burlachenko, Li, Richtárik, arXiv:2102.07845, Algorithm 1.
//
//   c_t ~ Be(p), one coin for all; c_0 = 1                           server, sent as a flag with x^t
//   c_t = 1:  g_i = ∇f_i(x^t),                    g^t = mean g_i            client i sends it whole
//   c_t = 0:  q_i = Q_i(∇f_i(x^t) − ∇f_i(x^{t−1})),  g^t = g^{t−1} + mean q_i   client i sends q_i
//   x^{t+1} = x^t − γ g^t                                            server, sends x^{t+1}
//
// Theory: p = ζ/d (ζ: expected number of sent coordinates), γ = 1/(L + L~ √((1−p) ω/(p n))); then
// E‖∇f(x̂)‖² ≤ 2 Δ⁰/(γ T) (Theorem 2.1, with L~ in place of L).
#pragma once

#include <cmath>

#include "algorithms/params.h"
#include "algorithms/sampling.h"
#include "algorithms/vector_ops.h"
#include "compressors/config_error.h"

namespace gradwire {

struct MarinaParams {
  static constexpr Facts facts{
      .name = "marina",
      .summary = "compressed differences of successive gradients, whole gradients now and then",
      .reference = "Gorbunov et al., arXiv:2102.07845",
      .takes = Takes::kUnbiased,
      .strict = true,
      .needs_all_replies = true,
      .partial = false,
      .client_state = ClientState::kRecomputable,
  };
  StepSize step_size;
  std::optional<double> p;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("p", self.p, "probability of a whole round; theory: zeta/d");
  }
  void resolve(const Theory& theory, Warnings&) {
    const Quality& q = theory.compressor;
    if (!p) p = q.zeta / static_cast<double>(theory.d);
    if (!(*p > 0 && *p <= 1))
      throw ConfigError("algorithm.p", "a probability above 0 and at most 1 is needed");
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    step_size.resolve(1 / (s.L + s.L_tilde() * std::sqrt((1 - *p) * q.omega / (*p * theory.n))));
  }
};

template <class Real>
struct Marina {
  using Params = MarinaParams;
  enum Flags : std::uint32_t { kCompressed = 0, kWhole = 1 };

  struct Client {
    Vec<Real> grad_prev, grad;  // ∇f_i(x^{t−1}); the proposal ∇f_i(x^t)
    Store<Real> q_i;

    Client(const Setup<Real>&, const Params&) {}
    static void fields(auto& self, auto&& visit) { visit(self.grad_prev); }

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      if (down.flags == kCompressed && grad_prev.empty()) return cannot(Answer::kNeedsState, down);
      const View<Real> x = down.parts[0].values;
      grad.resize(x.size());
      const double loss = ctx.oracle.loss_and_gradient(x, {}, grad);
      if (down.flags == kWhole) return reply_of(down, loss, Payload<Real>::dense(grad));
      Vec<Real>& difference = ctx.scratch.vec(0, x.size());
      for (std::size_t j = 0; j < x.size(); ++j) difference[j] = grad[j] - grad_prev[j];
      return reply_of(down, loss,
                      compress(ctx.compressor, difference, ctx.draw_key(down.round), ctx.scratch, q_i));
    }
    void commit() { grad_prev.swap(grad); }
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>& ctx) {
      // x^{t−1}: one gradient here instead of n vectors on the server.
      grad_prev.clear();
      if (resync.parts.size() == 0) return;
      const View<Real> x_prev = resync.parts[0].values;
      grad_prev.resize(x_prev.size());
      ctx.oracle.loss_and_gradient(x_prev, {}, grad_prev);
    }
  };

  struct Server {
    const Setup<Real>& setup;
    Real gamma;
    double p;
    Vec<Real> x, x_prev, g;
    std::uint32_t t = 0;

    Server(const Setup<Real>& s, const Params& params)
        : setup(s), gamma(*params.step_size.value), p(*params.p), x(s.x0), g(s.d) {}
    static void fields(auto& self, auto&& visit) {
      visit(self.x);
      visit(self.x_prev);
      visit(self.g);
      visit(self.t);
    }

    bool whole() const { return t == 0 || shared_coin(setup.seed, t, p); }
    Downlink<Real> broadcast() const {
      return {t, whole() ? kWhole : kCompressed, {Payload<Real>::dense(x)}};
    }
    std::optional<Downlink<Real>> resync(ClientId, Answer) const {
      Downlink<Real> down;
      down.round = t;
      if (t > 0) down.parts = {Payload<Real>::dense(x_prev)};
      return down;
    }
    void apply(std::span<const Uplink<Real>> uplinks) {
      if (whole()) std::fill(g.begin(), g.end(), Real(0));
      add_weighted<Real>(setup, uplinks, 0, Real(1), g);
      x_prev = x;
      axpy<Real>(-gamma, g, x);
      ++t;
    }
    View<Real> model() const { return x; }
  };
};

}  // namespace gradwire
