// EF (error feedback) — Seide et al., Interspeech 2014; Stich, Cordonnier, Jaggi, arXiv:1809.07599;
// Karimireddy et al., arXiv:1901.09847.
//
//   q_i = e_i + γ ∇f_i(x^t; ξ)                            client i; e_i starts at 0
//   sends C(q_i),  e_i ← q_i − C(q_i)
//   x^{t+1} = x^t − mean_{i∈S} C(q_i)                     server, sends x^{t+1}
//
// x^t − mean e_i = x^0 − γ Σ_s mean ∇f_i(x^s). The memory e_i contains γ, so the algorithm has no step-size
// schedules. Theory gives O(T^{−2/3}) for bounded gradients. On heterogeneous data, the algorithm stalls with
// a constant step. The default is EF21's step, so that both algorithms are compared at equal steps.
#pragma once

#include "algorithms/support/ef21_core.h"

namespace gradwire {

struct Ef14Params {
  static constexpr AlgorithmTraits traits{
      .name = "ef14",
      .summary = "classical error feedback: the part that was not sent is added to the next message",
      .reference = "Seide et al., 2014; Stich et al., arXiv:1809.07599",
      .compressor_class = CompressorClass::kContractive,
      .stochastic = true,
      .client_state = ClientState::kPrivate,
      .adds_replies = true,
  };
  StepSize step_size;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma, inside the clients' memory");
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (step_size.value) return;
    step_size.resolve(ef21_step(theory));
    warnings.push_back("ef14: its theorems need bounded gradients; using the step size of ef21");
  }
};

template <class Real>
struct Ef14 {
  using Params = Ef14Params;

  struct Client {
    const RunContext<Real>& run_context;
    Real gamma;
    Vec<Real> e_i, q_i;
    PayloadBuffer<Real> sent;

    Client(const RunContext<Real>& s, const Params& p)
        : run_context(s), gamma(Real(*p.step_size.value)), e_i(s.d) {}
    static void fields(auto& self, auto&& visit) { visit(self.e_i); }

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values;
      const double loss = gradient_at(run_context, ctx, down.round, x, q_i);
      Vec<Real>& v = ctx.scratch.vec(0, x.size());
      const auto add_error = [&](std::size_t first, std::size_t end) {
        for (std::size_t j = first; j < end; ++j) v[j] = q_i[j] = e_i[j] + gamma * q_i[j];
      };
      return reply_of(
          down, loss,
          compress_made(ctx.compressor, v, ctx.draw_key(down.round), ctx.scratch, sent, add_error));
    }
    void commit() {
      e_i.swap(q_i);
      add_decoded<Real>(sent.view(), Real(-1), e_i);
    }
    void adopt(const Downlink<Real>&, const ClientContext<Real>&) { e_i.assign(run_context.d, Real(0)); }
  };

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    Server(const RunContext<Real>& s, const Params&) : Base(s) {}

    void apply(Replies<Real> uplinks) {
      add_mean_of_replies<Real>(this->run_context, uplinks, 0, Real(-1), this->x);
      ++this->t;
    }
  };
};

}  // namespace gradwire
