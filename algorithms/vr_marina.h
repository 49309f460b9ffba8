// VR-MARINA (finite sums) — Gorbunov, Burlachenko, Li, Richtárik, arXiv:2102.07845, Algorithm 2: MARINA
// (marina.h) whose compressed rounds send C_i(∇f_i(x^t; B) − ∇f_i(x^{t−1}; B)), one batch B of `batch`
// samples at both points.
//
// Theory: p = min(ζ/d, b/(m+b)), γ = 1/(L + √((1−p)/p) √(A L~² + (A + 1/n) L_s²/b)), where b = batch, L_s is
// the average smoothness of the samples, and A = ω/n is that of the compressors. With client weights w_i,
// max w_i replaces 1/n. With mu, the step changes as in marina.h (Theorem 3.2).
#pragma once

#include "algorithms/marina.h"

namespace gradwire {

struct VrMarinaParams : MarinaCoreParams {
  static constexpr AlgorithmTraits traits{
      .name = "vr_marina",
      .summary = "MARINA on minibatch differences",
      .reference = "Gorbunov et al., arXiv:2102.07845",
      .compressor_class = CompressorClass::kUnbiased,
      .strict = true,
      .needs_all_replies = true,
      .partial = false,
      .stochastic = true,
      .client_state = ClientState::kReplica,
      .theory_knows_batches = true,
      .adds_replies = true,
  };
  void resolve(const Theory& theory, Warnings& warnings) {
    const double b = theory.batch == 0 ? theory.m() : theory.batch;
    resolve_p(theory.batch == 0 ? zeta_share(theory) : std::min(zeta_share(theory), b / (theory.m() + b)),
              theory, warnings);
    const double pl = mu.resolve(theory);
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    const double A = theory.compressor.A, L_tilde = s.L_tilde(),
                 L_s = theory.batch == 0 ? 0 : sample_smoothness(s);
    const double error = error_weight(pl) * (1 - *p) / *p;
    const double spread = A * L_tilde * L_tilde + (A + theory.skew() / theory.n) * L_s * L_s / b;
    step_size.resolve(pl_step(1 / (s.L + std::sqrt(error * spread)), *p, pl));
  }
};

template <class Real>
struct VrMarina {
  using Params = VrMarinaParams;
  using Server = MarinaServer<Real>;

  struct Client {
    const RunContext<Real>& run_context;
    LastPoints<Real> points;
    PayloadBuffer<Real> m_i;

    Client(const RunContext<Real>& s, const Params&) : run_context(s) {}
    static void fields(auto& self, auto&& visit) { LastPoints<Real>::fields(self.points, visit); }

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      if (!points.follow(down)) return cannot(ReplyStatus::kNeedsBroadcast, down);
      const View<Real> x = down.parts[0].values;
      Vec<Real>& v = ctx.scratch.vec(0, x.size());
      if (down.flags == kWholeRound) {
        const double loss = ctx.oracle.loss_and_gradient(x, {}, v);
        return reply_of(down, loss, m_i.whole(v));
      }
      const Batch batch = batch_of(run_context, ctx, down.round);
      const double loss =
          gradient_difference<Real>(ctx, x, points.x_prev, batch, v, ctx.scratch.vec(1, x.size()));
      return reply_of(down, loss, compress(ctx.compressor, v, ctx.draw_key(down.round), ctx.scratch, m_i));
    }
    void commit() {}
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>&) { points.adopt(resync); }
  };
};

}  // namespace gradwire
