// EF21 — Richtárik, Sokolov, Fatkhullin, arXiv:2106.05203, Algorithm 2.
//
//   c_i^t   = C(∇f_i(x^t) − g_i),  g_i ← g_i + c_i^t      client i, sends c_i^t
//   g^t     = g^{t−1} + (1/n) Σ_{i∈S} c_i^t               server
//   x^{t+1} = x^t − γ g^t                                 server, sends x^{t+1}
//
// How g_i starts is the option `init`, and its bits are counted in round 0:
//   gradient    g_i^0 = ∇f_i(x^0): a client's first message is sent whole (the authors' code)
//   compressed  g_i^0 = C(∇f_i(x^0)): the first message is compressed like the others (the paper's listing)
//   zero        g_i^0 = 0: nothing is sent in round 0, and x^1 = x^0
//
// Theory: γ = 1/(L + L~ ξ(α)), ξ(α) = √(1−α)/(1−√(1−α)); then avg_t ‖∇f(x^t)‖² ≤ 2 Δ⁰/(γ T) + G⁰/(θ T)
// (Theorem 1).
#pragma once

#include <cmath>

#include "algorithms/mirror.h"
#include "algorithms/params.h"
#include "algorithms/sampling.h"
#include "algorithms/vector_ops.h"

namespace gradwire {

struct Ef21Init {
  static constexpr std::array<std::string_view, 3> words = {"gradient", "compressed", "zero"};
};

struct Ef21Params {
  static constexpr Facts facts{
      .name = "ef21",
      .summary = "error feedback: compressed differences to the gradient estimates g_i",
      .reference = "Richtarik, Sokolov, Fatkhullin, arXiv:2106.05203",
      .takes = Takes::kContractive,
      .strict = true,
      .client_state = ClientState::kMirrored,
  };
  StepSize step_size;
  Choice<Ef21Init> init;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("init", self.init, "how g_i starts: gradient | compressed | zero");
  }
  void resolve(const Theory& theory, Warnings&) {
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    const double root = std::sqrt(1 - theory.compressor.alpha);
    step_size.resolve(1 / (s.L + s.L_tilde() * root / (1 - root)));
  }
};

template <class Real>
struct Ef21 {
  using Params = Ef21Params;

  struct Client {
    const Setup<Real>& setup;
    bool first_whole;
    Vec<Real> g_i;
    Store<Real> c_i;

    Client(const Setup<Real>& s, const Params& p) : setup(s), first_whole(p.init.is("gradient")), g_i(s.d) {}
    static void fields(auto& self, auto&& visit) { visit(self.g_i); }

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      Vec<Real>& r = ctx.scratch.vec(0, x.size());
      const double loss = ctx.oracle.loss_and_gradient(x, {}, r);
      axpy<Real>(Real(-1), g_i, r);
      if (ctx.first && first_whole) return reply_of(down, loss, c_i.whole(r));
      return reply_of(down, loss, compress(ctx.compressor, r, ctx.draw_key(down.round), ctx.scratch, c_i));
    }
    void commit() { add_decoded<Real>(c_i.view(), Real(1), g_i); }
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>&) {
      adopt_vector(resync, setup.d, g_i);
    }
  };

  struct Server {
    const Setup<Real>& setup;
    bool starts_at_zero;
    Real gamma;
    Vec<Real> x, g;
    std::uint32_t t = 0;
    Mirror<Real> g_of;

    Server(const Setup<Real>& s, const Params& p)
        : setup(s), starts_at_zero(p.init.is("zero")), gamma(*p.step_size.value), x(s.x0), g(s.d), g_of(s) {}
    static void fields(auto& self, auto&& visit) {
      visit(self.x);
      visit(self.g);
      visit(self.t);
      visit(self.g_of.rows());
    }

    void cohort(std::vector<ClientId>& out) const {
      if (t == 0 && starts_at_zero) return out.clear();
      if (t == 0) return everyone(setup.n, out);  // every g_i^0 is part of g^0
      sample_cohort(setup.seed, t, setup.n, setup.algorithm.participation, out);
    }
    Downlink<Real> broadcast() const { return {t, 0, {Payload<Real>::dense(x)}}; }
    std::optional<Downlink<Real>> resync(ClientId i, Answer) const { return g_of.restore(i, t); }
    void apply(std::span<const Uplink<Real>> uplinks) {
      add_weighted<Real>(setup, uplinks, 0, Real(1), g);
      for (const auto& up : uplinks) g_of.add(up, 0, Real(1));
      axpy<Real>(-gamma, g, x);
      ++t;
    }
    View<Real> model() const { return x; }
  };
};

}  // namespace gradwire
