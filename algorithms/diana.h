// DIANA — Mishchenko, Gorbunov, Takáč, Richtárik, arXiv:1901.09269, Algorithm 1.
//
//   m_i = C_i(∇f_i(x^t) − h_i),  h_i ← h_i + α m_i                     client i, sends m_i; h_i starts at 0
//   g^t = h + mean_{i∈S} m_i (the old h),  h ← h + α (1/n) Σ_{i∈S} m_i   server
//   x^{t+1} = x^t − γ g^t                                              server, sends x^{t+1}
//
// Theory: α = 1/(1+ω); f_i convex: γ = 1/(L_max (1 + 6ω/n)) (arXiv:1901.09269, Theorem 1 with M = 4ω/(nα));
// nonconvex: γ = 1/(10 L √(1+ω/n) (2+ω)) (as the MARINA paper's experiments have it, arXiv:2102.07845).
#pragma once

#include <cmath>

#include "algorithms/mirror.h"
#include "algorithms/params.h"
#include "algorithms/sampling.h"
#include "algorithms/vector_ops.h"
#include "compressors/config_error.h"

namespace gradwire {

struct DianaParams {
  static constexpr Facts facts{
      .name = "diana",
      .summary = "compressed differences to learned shifts h_i",
      .reference = "Mishchenko et al., arXiv:1901.09269",
      .takes = Takes::kUnbiased,
      .stochastic = true,
      .client_state = ClientState::kMirrored,
  };
  StepSize step_size;
  std::optional<double> alpha;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("alpha", self.alpha, "rate at which the shifts learn; theory: 1/(1+omega)");
  }
  void resolve(const Theory& theory, Warnings&) {
    const double omega = theory.compressor.omega;
    if (!alpha) alpha = 1 / (1 + omega);
    if (!(*alpha > 0)) throw ConfigError("algorithm.alpha", "must be positive");
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    const double ratio = omega / theory.n;
    step_size.resolve(s.convex ? 1 / (s.L_max() * (1 + 6 * ratio))
                               : 1 / (10 * s.L * std::sqrt(1 + ratio) * (2 + omega)));
  }
};

template <class Real>
struct Diana {
  using Params = DianaParams;

  struct Client {
    const Setup<Real>& setup;
    Real alpha;
    Vec<Real> h_i;
    Store<Real> m_i;

    Client(const Setup<Real>& s, const Params& p) : setup(s), alpha(*p.alpha), h_i(s.d) {}
    static void fields(auto& self, auto&& visit) { visit(self.h_i); }

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      Vec<Real>& r = ctx.scratch.vec(0, x.size());
      const Batch batch = draw_batch(ctx.seed, ctx.client, down.round, 0, setup.algorithm.batch,
                                     ctx.oracle.sample_count(), ctx.scratch.order);
      const double loss = ctx.oracle.loss_and_gradient(x, batch, r);
      axpy<Real>(Real(-1), h_i, r);
      return reply_of(down, loss, compress(ctx.compressor, r, ctx.draw_key(down.round), ctx.scratch, m_i));
    }
    void commit() { add_decoded<Real>(m_i.view(), alpha, h_i); }
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>&) {
      adopt_vector(resync, setup.d, h_i);
    }
  };

  struct Server {
    const Setup<Real>& setup;
    Real gamma, alpha;
    Vec<Real> x, h, g;  // g: work space
    std::uint32_t t = 0;
    Mirror<Real> h_of;

    Server(const Setup<Real>& s, const Params& p)
        : setup(s), gamma(*p.step_size.value), alpha(*p.alpha), x(s.x0), h(s.d), g(s.d), h_of(s) {}
    static void fields(auto& self, auto&& visit) {
      visit(self.x);
      visit(self.h);
      visit(self.t);
      visit(self.h_of.rows());
    }

    void cohort(std::vector<ClientId>& out) const {
      sample_cohort(setup.seed, t, setup.n, setup.algorithm.participation, out);
    }
    Downlink<Real> broadcast() const { return {t, 0, {Payload<Real>::dense(x)}}; }
    std::optional<Downlink<Real>> resync(ClientId i, Answer) const { return h_of.restore(i, t); }
    void apply(std::span<const Uplink<Real>> uplinks) {
      g = h;
      add_mean_of_replies<Real>(setup, uplinks, 0, Real(1), g);
      add_weighted<Real>(setup, uplinks, 0, alpha, h);
      for (const auto& up : uplinks) h_of.add(up, 0, alpha);
      axpy<Real>(-gamma, g, x);
      ++t;
    }
    View<Real> model() const { return x; }
  };
};

}  // namespace gradwire
