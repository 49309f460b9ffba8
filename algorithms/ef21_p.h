// EF21-P — Gruntkowska, Tyurin, Richtárik, arXiv:2209.15218: EF21's mechanism on the model broadcast.
//
//   m_i = C_i(∇f_i(w^t))                                    client i, sends m_i
//   x^{t+1} = x^t − γ mean_{i∈S} m_i                        server
//   w^{t+1} = w^t + C_M(x^{t+1} − w^t)                      server, sends the change; clients hold w
//
// C = compressor (unbiased), C_M = compressor_down (contractive); w^0 = x^0 is broadcast whole. f is
// evaluated at x.
//
// Theory, if C is the identity: γ = 1/(L (1 + ξ(α_M))). ‖g − ∇f(x)‖² ≤ L² ‖w − x‖², and ‖w − x‖² obeys the
// recursion of EF21's error. So EF21's Theorem 1 holds with L in place of L~.
#pragma once

#include <algorithm>

#include "algorithms/support/down_compressor.h"
#include "algorithms/support/ef21_core.h"
#include "algorithms/support/replica.h"

namespace gradwire {

struct Ef21PParams {
  static constexpr AlgorithmTraits traits{
      .name = "ef21_p",
      .summary = "error feedback on the model that the server broadcasts",
      .reference = "Gruntkowska, Tyurin, Richtarik, arXiv:2209.15218",
      .compressor_class = CompressorClass::kUnbiased,
      .partial = false,
      .stochastic = true,
      .client_state = ClientState::kReplica,
      .adds_replies = true,
      .shows_early = true,
  };
  StepSize step_size;
  std::string compressor_down = "identity";
  GradientParams gradient;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("compressor_down", self.compressor_down, "contractive compressor of the server's messages");
    GradientParams::fields(self.gradient, visit);
  }
  void resolve(const Theory& theory, Warnings&) {
    const CompressorConstants down = resolve_contractive_down(compressor_down, theory);
    if (step_size.value) return;
    if (theory.compressor.omega > 0)
      throw ConfigError("algorithm.step_size",
                        "ef21_p has a theory step only for the compressor identity; give a number");
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    step_size.resolve(1 / (s.L * (1 + ErrorFeedback(down.alpha).xi())));
  }
};

template <class Real>
struct Ef21P {
  using Params = Ef21PParams;

  struct Client {
    const RunContext<Real>& run_context;
    Replica<Real> w;
    GradientMessage<Real> message;
    PayloadBuffer<Real> m_i;

    Client(const RunContext<Real>& s, const Params& p) : run_context(s), message(p.gradient) {}
    static void fields(auto& self, auto&& visit) { Replica<Real>::fields(self.w, visit); }

    bool accepts(const Downlink<Real>& down, bool is_resync) const {
      return down.parts.size() == 1 && down.parts[0].dim == run_context.d &&
             (!is_resync || down.parts[0].shape == Shape::kDense);
    }
    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      if (!w.follow(down)) return cannot(ReplyStatus::kNeedsBroadcast, down);
      const double loss = message.make(run_context, ctx, down.round, w.value, {}, m_i);
      return reply_of(down, loss, m_i.view());
    }
    void commit() {}
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>&) { w.adopt(resync); }
  };

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::run_context, Base::t, Base::x;
    Real gamma;
    Compressor C_M;
    Vec<Real> w_before, w;  // before and after the change that round t sends
    PayloadBuffer<Real> change;
    Scratch<Real> scratch;

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s),
          gamma(Real(*p.step_size.value)),
          C_M(parse_down(p.compressor_down, s.d)),
          w_before(s.x0),
          w(s.x0) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.w_before);
    }
    void restored() {
      if (t > 0) compress_change();
    }

    Downlink<Real> broadcast() const {
      if (t == 0) return {0, 0, {Payload<Real>::dense(w)}};
      return {t, 0, {change.view()}};
    }
    std::optional<Downlink<Real>> resync(ClientId, ReplyStatus) const {
      return Downlink<Real>{t, 0, {Payload<Real>::dense(w)}};
    }
    void apply(Replies<Real> uplinks) {
      add_mean_of_replies<Real>(run_context, uplinks, 0, -gamma, x);
      ++t;
      w_before = w;
      compress_change();
    }

   private:
    void compress_change() {
      Vec<Real>& difference = scratch.vec(0, x.size());
      for (std::size_t j = 0; j < x.size(); ++j) difference[j] = x[j] - w_before[j];
      compress(C_M, difference, downlink_key(run_context.seed, t), scratch, change);
      w = w_before;
      add_decoded<Real>(change.view(), Real(1), w);
    }
  };
};

}  // namespace gradwire
