// EF21-BC — Fatkhullin, Sokolov, Gorbunov, Li, Richtárik, arXiv:2110.03294, Algorithm 5: both directions
// compressed.
//
//   c_i = C(∇f_i(x^t) − g~_i),  g~_i ← g~_i + c_i          client i, sends c_i (`init` as in ef21)
//   g~ ← g~ + (1/n) Σ_{i∈S} c_i,  b = C_M(g~ − g),  g ← g + b   server, sends b (the first one whole)
//   x^{t+1} = x^t − γ g                                    server and clients
//
// C = compressor, C_M = compressor_down. Round 0 broadcasts x^0 whole.
//
// Theory: γ = 1/(L + L~ √(2K)), K = 8 β_M/θ_M + (1 + 8 β_M/θ_M) β/θ, with θ and β of ErrorFeedback for C, and
// θ_M and β_M for C_M. This step follows from the descent lemma and Young's inequality, for deterministic and
// random compressors. If C_M is the identity, γ is EF21's step. The paper's Theorem 4 gives a step of the
// same order, α_M α / L~.
#pragma once

#include <algorithm>

#include "algorithms/support/down_compressor.h"
#include "algorithms/support/ef21_core.h"
#include "algorithms/support/replica.h"

namespace gradwire {

struct Ef21BcParams : Ef21CoreParams {
  static constexpr AlgorithmTraits traits{
      .name = "ef21_bc",
      .summary = "EF21 with both directions compressed",
      .reference = "Fatkhullin et al., arXiv:2110.03294",
      .compressor_class = CompressorClass::kContractive,
      .strict = true,
      .partial = false,
      .client_state = ClientState::kMirrored | ClientState::kReplica,
      .adds_replies = true,
  };
  std::string compressor_down = "identity";

  static void fields(auto& self, auto&& visit) {
    Ef21CoreParams::fields(self, visit);
    visit("compressor_down", self.compressor_down, "contractive compressor of the server's messages");
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    const CompressorConstants down = resolve_contractive_down(compressor_down, theory);
    if (init.is("zero")) throw ConfigError("algorithm.init", "ef21_bc starts with gradient or compressed");
    resolve_step(theory, warnings, [&] {
      if (down.alpha == 1) return ef21_step(theory);
      const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
      const ErrorFeedback c(theory.compressor.alpha), m(down.alpha);
      const double master = 8 * m.beta / m.theta;
      return 1 / (s.L + s.L_tilde() * std::sqrt(2 * (master + (1 + master) * c.beta / c.theta)));
    });
  }
};

template <class Real>
struct Ef21Bc {
  using Params = Ef21BcParams;

  // The client receives x^0 in round 0. In round t > 0 it receives b, which the server made at the end of
  // round t − 1, and computes g^t and x^t from it.
  struct Client : Ef21CoreClient<Real> {
    using Base = Ef21CoreClient<Real>;
    double gamma;
    Schedule schedule;
    Vec<Real> x, g;
    std::uint32_t round = 0;  // round of x

    Client(const RunContext<Real>& s, const Params& p)
        : Base(s, p), gamma(*p.step_size.value), schedule(p.schedule) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.x);
      visit(self.g);
      visit(self.round);
    }

    void commit() { add_decoded<Real>(this->c_i.view(), Real(1), this->g_i); }
    bool follow(const Downlink<Real>& down) {
      if (!x.empty() && round == down.round) return true;
      if (down.round == 0) {
        x.assign(this->run_context.d, Real(0));
        add_decoded<Real>(down.parts[0], Real(1), x);
        g.assign(x.size(), Real(0));
      } else {
        if (x.empty() || round + 1 != down.round) return false;
        add_decoded<Real>(down.parts[0], Real(1), g);
        axpy<Real>(-Real(gamma * schedule.factor(round)), g, x);
      }
      round = down.round;
      return true;
    }
    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      if (!follow(down)) return cannot(ReplyStatus::kNeedsBroadcast, down);
      Vec<Real>& r = ctx.scratch.vec(0, x.size());
      const double loss = ctx.oracle.loss_and_gradient(x, {}, r);
      return this->propose(r, loss, down, ctx);
    }
    bool accepts(const Downlink<Real>& down, bool is_resync) const {
      const std::size_t count = down.parts.size();
      return (is_resync ? count == 2 || count == 3 : count == 1) &&
             all_of_length(down.parts, this->run_context.d);
    }
    // Takes x^t and g^t, and g~_i if the client lost it.
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>&) {
      adopt_part(resync, 0, x);
      adopt_part(resync, 1, g);
      round = resync.round;
      if (resync.parts.size() > 2) adopt_part(resync, 2, this->g_i);
    }

   private:
    void adopt_part(const Downlink<Real>& resync, std::size_t k, Vec<Real>& v) {
      v.assign(this->run_context.d, Real(0));
      add_decoded<Real>(resync.parts[k], Real(1), v);
    }
  };

  struct Server : Ef21CoreServer<Real> {
    using Base = Ef21CoreServer<Real>;
    using Base::run_context, Base::t, Base::x, Base::g;  // g is g~ here
    Compressor C_M;
    Vec<Real> g_before, g_sent;  // the clients' g before and after the change that round t sends
    PayloadBuffer<Real> b;
    Scratch<Real> scratch;

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s, p), C_M(parse_down(p.compressor_down, s.d)), g_before(s.d), g_sent(s.d) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.g_before);
    }
    void restored() {
      if (t > 0) compress_change();
    }

    Downlink<Real> broadcast() const {
      if (t == 0) return {0, 0, {Payload<Real>::dense(x)}};
      return {t, 0, {b.view()}};
    }
    std::optional<Downlink<Real>> resync(ClientId i, ReplyStatus lacks) const {
      Downlink<Real> down{t, 0, {Payload<Real>::dense(x), Payload<Real>::dense(g_sent)}};
      if (lacks == ReplyStatus::kNeedsBroadcast) return down;
      const auto own = this->g_of.restore(i, t);
      if (!own) return std::nullopt;
      if (own->parts.size() > 0) down.parts.push_back(own->parts[0]);
      return down;
    }
    void apply(Replies<Real> uplinks) {
      this->average(uplinks);
      const Real gamma = this->gamma_now();
      ++t;
      g_before = g_sent;
      compress_change();
      axpy<Real>(-gamma, g_sent, x);
    }

   private:
    // Computes b of round t (the first one whole) and the g that follows from it.
    void compress_change() {
      Vec<Real>& change = scratch.vec(0, x.size());
      for (std::size_t j = 0; j < x.size(); ++j) change[j] = g[j] - g_before[j];
      if (t == 1) {
        b.whole(change);
      } else {
        compress(C_M, change, downlink_key(run_context.seed, t), scratch, b);
      }
      g_sent = g_before;
      add_decoded<Real>(b.view(), Real(1), g_sent);
    }
  };
};

}  // namespace gradwire
