// DCGD — Khirirat, Feyzmahdavian, Johansson, arXiv:1806.06573; QSGD, arXiv:1610.02132.
//
//   m_i^t   = C_i(∇f_i(x^t))                      client i, sends m_i^t
//   x^{t+1} = x^t − γ mean_{i∈S} m_i^t            server, sends x^{t+1}
//
// Theory (f_i convex): γ ≤ 1/(L + 2 L_max ω/n). Converges exactly only where all ∇f_i(x*) = 0.
#pragma once

#include <algorithm>

#include "algorithms/params.h"
#include "algorithms/sampling.h"
#include "algorithms/vector_ops.h"

namespace gradwire {

struct DcgdParams {
  static constexpr Facts facts{
      .name = "dcgd",
      .summary = "distributed compressed gradient descent",
      .reference = "Khirirat et al., arXiv:1806.06573",
      .takes = Takes::kUnbiased,
      .stochastic = true,
  };
  StepSize step_size;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    if (!s.convex)
      warnings.push_back("dcgd: the theorem behind the step size assumes convex f_i; these are not");
    step_size.resolve(1 / (s.L + 2 * s.L_max() * theory.compressor.omega / theory.n));
  }
};

template <class Real>
struct Dcgd {
  using Params = DcgdParams;

  struct Client {
    const Setup<Real>& setup;
    Store<Real> m_i;

    Client(const Setup<Real>& s, const Params&) : setup(s) {}
    static void fields(auto&, auto&&) {}

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      Vec<Real>& grad = ctx.scratch.vec(0, x.size());
      const Batch batch = draw_batch(ctx.seed, ctx.client, down.round, 0, setup.algorithm.batch,
                                     ctx.oracle.sample_count(), ctx.scratch.order);
      const double loss = ctx.oracle.loss_and_gradient(x, batch, grad);
      return reply_of(down, loss, compress(ctx.compressor, grad, ctx.draw_key(down.round), ctx.scratch, m_i));
    }
    void commit() {}
  };

  struct Server {
    const Setup<Real>& setup;
    Real gamma;
    Vec<Real> x, m;  // m: work space
    std::uint32_t t = 0;

    Server(const Setup<Real>& s, const Params& p) : setup(s), gamma(*p.step_size.value), x(s.x0), m(s.d) {}
    static void fields(auto& self, auto&& visit) {
      visit(self.x);
      visit(self.t);
    }

    void cohort(std::vector<ClientId>& out) const {
      sample_cohort(setup.seed, t, setup.n, setup.algorithm.participation, out);
    }
    Downlink<Real> broadcast() const { return {t, 0, {Payload<Real>::dense(x)}}; }
    void apply(std::span<const Uplink<Real>> uplinks) {
      std::fill(m.begin(), m.end(), Real(0));
      add_mean_of_replies<Real>(setup, uplinks, 0, Real(1), m);
      axpy<Real>(-gamma, m, x);
      ++t;
    }
    View<Real> model() const { return x; }
  };
};

}  // namespace gradwire
