// PAGE — Li, Bao, Zhang, Richtárik, arXiv:2008.10898, Algorithm 1, on all samples of all clients.
//
//   c_t ~ Be(p), c_0 = 1
//   c_t = 1:  g^t = ∇f(x^t)
//   c_t = 0:  g^t = g^{t−1} + (1/b) Σ_{s=1..b} (∇f_{j_s}(x^t) − ∇f_{j_s}(x^{t−1}))
//   x^{t+1} = x^t − γ g^t
//
// b = batch samples in total, drawn with replacement: a client, then one of its samples. With
// clients.weights, the terms of client i have the factor n w_i. Each client sends its part of the sum.
// Rounds with c_t = 0 broadcast x^t and x^{t−1}. Theory, for N samples in total with the mean-squared
// smoothness L_s:
//   p = b/(b+N),  γ = 1/(L_s (1 + √((1−p)/(p b)))).
// With client weights w_i, 1/b gets the factor n max w_i. With mu, the step changes as in marina.h.
#pragma once

#include "algorithms/marina.h"
#include "base/config_error.h"

namespace gradwire {

struct PageParams : MarinaCoreParams {
  static constexpr AlgorithmTraits traits{
      .name = "page",
      .summary = "recursive minibatch differences, and occasional whole gradients",
      .reference = "Li, Bao, Zhang, Richtarik, arXiv:2008.10898",
      .compressor_class = CompressorClass::kIdentity,
      .needs_all_replies = true,
      .partial = false,
      .stochastic = true,
      .theory_knows_batches = true,
      .adds_replies = true,
  };
  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("p", self.p, "probability of a whole round; theory: b/(b+N)");
    visit("mu", self.mu, kPlMeaning, pl_rules(self.step_size));
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    const double b = theory.batch, N = theory.m() * theory.n;
    resolve_p(theory.batch == 0 ? 1 : b / (b + N), theory, warnings);
    if (theory.batch == 0 && *p < 1)
      throw ConfigError("algorithm.batch",
                        "page with p below 1 needs a batch, else its other rounds use an old gradient; "
                        "give batch, or leave p out");
    const double pl = mu.resolve(theory);
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    if (theory.batch == 0) return step_size.resolve(1 / s.L);
    const double error = error_weight(pl) * (1 - *p) * theory.skew() / (*p * b);
    step_size.resolve(pl_step(1 / (sample_smoothness(s) * (1 + std::sqrt(error))), *p, pl));
  }
};

template <class Real>
struct Page {
  using Params = PageParams;

  struct Client {
    const RunContext<Real>& run_context;
    PayloadBuffer<Real> m_i;

    Client(const RunContext<Real>& s, const Params&) : run_context(s) {}
    static void fields(auto&, auto&&) {}

    bool accepts(const Downlink<Real>& down, bool is_resync) const {
      return accepts_points(down, is_resync, run_context.d);
    }
    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      Vec<Real>& v = ctx.scratch.vec(0, x.size());
      if (down.flags == kWholeRound) {
        const double loss = ctx.oracle.loss_and_gradient(x, {}, v);
        return reply_of(down, loss, m_i.whole(v));
      }
      const std::uint32_t b = run_context.algorithm.batch;
      const std::uint32_t own = times_drawn(ctx.seed, down.round, run_context.n, b, ctx.client);
      const Batch batch =
          draw_batch(ctx.seed, ctx.client, down.round, 0, own, ctx.oracle.sample_count(), ctx.scratch.order);
      if (batch.empty()) return reply_of(down, 0, Payload<Real>::nothing(run_context.d));
      const double loss =
          gradient_difference<Real>(ctx, x, down.parts[1].values, batch, v, ctx.scratch.vec(1, x.size()));
      const Real share = Real(own) / Real(b);
      for (Real& e : v) e *= share;
      return reply_of(down, loss, m_i.whole(v));
    }
    void commit() {}
  };

  struct Server : TwoPointServer<Real> {
    using Base = TwoPointServer<Real>;
    using Base::run_context, Base::t, Base::x, Base::g, Base::whole;

    Server(const RunContext<Real>& s, const Params& p) : Base(s, p) {}

    void cohort(std::vector<ClientId>& out) const { this->drawn_cohort(run_context.algorithm.batch, out); }
    void apply(Replies<Real> uplinks) {
      if (whole()) std::fill(g.begin(), g.end(), Real(0));
      add_weighted<Real>(run_context, uplinks, 0, whole() ? Real(1) : Real(run_context.n), g);
      this->step();
    }
  };
};

}  // namespace gradwire
