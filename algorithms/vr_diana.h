// VR-DIANA — Horváth, Kovalev, Mishchenko, Stich, Richtárik, arXiv:1904.05115 (L-SVRG variant): DIANA
// (diana.h) with
//
//   k_i = ∇f_i(x^t; B) − ∇f_i(w^t; B) + ∇f_i(w^t),  B = `batch` samples    in place of ∇f_i(x^t)
//   w^{t+1} = x^t with probability p (one coin for all clients), else w^t;  w^0 = x^0
//
// Theory: p = 1/m' with m' = m/batch, and
//   γ = 1/(10 L √(1+A) (1 + ω + m'^{2/3})),
// as in the experiments of the MARINA paper (arXiv:2102.07845), but at most nonconvex_bound() of diana.h. L
// is that of the single samples. A = ω/n, or A = ω max w_i with client weights w_i. For a smaller p, γ is the
// step for m' = 1/p. With batch = "full" the algorithm is DIANA.
//
// The flags of a broadcast carry the round in which the server set w^t. A client keeps every x that becomes
// w, and computes ∇f_i(w) when it first needs it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithms/diana.h"

namespace gradwire {

struct VrDianaParams : ShiftParams {
  static constexpr AlgorithmTraits traits{
      .name = "vr_diana",
      .summary = "DIANA on variance-reduced minibatch gradients",
      .reference = "Horvath et al., arXiv:1904.05115",
      .compressor_class = CompressorClass::kUnbiased,
      .stochastic = true,
      .client_state = ClientState::kMirrored | ClientState::kReplica,
      .theory_knows_batches = true,
      .adds_replies = true,
  };
  std::optional<double> p;

  static void fields(auto& self, auto&& visit) {
    ShiftParams::fields(self, visit);
    visit("p", self.p, "probability that w becomes x; theory: batch/m");
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    resolve_alpha(theory, Assumptions(traits.name, step_size, theory, warnings));
    double m = theory.batch == 0 ? 1 : std::max(1.0, theory.m() / theory.batch);
    if (p) check_probability(*p, "p");
    if (p && theory.batch > 0) m = std::max(m, 1 / *p);
    if (!p) p = 1 / m;
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    const CompressorConstants q = counted(theory);
    const double L = theory.batch == 0 ? s.L : largest_sample_smoothness(s);
    const double step = 1 / (10 * L * std::sqrt(1 + q.A) * (1 + q.omega + std::pow(m, 2.0 / 3)));
    step_size.resolve(std::min(step, nonconvex_bound(s, q)));
  }
};

template <class Real>
struct VrDiana {
  using Params = VrDianaParams;

  struct Client : ShiftClient<Real> {
    using Base = ShiftClient<Real>;
    double p;
    Vec<Real> w, grad_w, next;  // w and ∇f_i(w); next is the x that becomes w
    std::uint32_t w_round = 0, next_round = 0;
    // The round of the w whose gradient a used reply has counted, and the round of the proposal's w.
    std::uint32_t counted = kNone, proposed = kNone;
    bool computed = false;  // true if this reply computed ∇f_i(w)

    Client(const RunContext<Real>& s, const Params& params) : Base(s, params), p(*params.p) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.w);
      visit(self.grad_w);
      visit(self.next);
      visit(self.w_round);
      visit(self.next_round);
      visit(self.counted);
    }

    // Sets w to the point that the server broadcast in round `set`. Returns false if this client missed that
    // broadcast.
    bool anchor(std::uint32_t set, const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      if (!w.empty() && w_round == set) return true;
      const View<Real> x = down.parts[0].values;
      if (set == down.round) {
        w.assign(x.begin(), x.end());
      } else if (!next.empty() && next_round == set) {
        w.swap(next);
      } else {
        return false;
      }
      w_round = set;
      renew(ctx);
      return true;
    }
    void renew(const ClientContext<Real>& ctx) {
      next.clear();
      next_round = 0;
      grad_w.resize(w.size());
      ctx.oracle.loss_and_gradient(w, {}, grad_w);
      computed = true;
    }

    // Returns the reply with its number of gradients. The first used reply that needs ∇f_i(w) counts its m
    // gradients, regardless of when and how often the client computed them. So totals do not depend on
    // restarts.
    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      computed = false;
      Uplink<Real> up = reply_uncounted(down, ctx);
      if (up.status != ReplyStatus::kReply) return up;
      const std::uint64_t m = ctx.oracle.sample_count();
      proposed = down.flags;
      up.grad_calls = (counted == proposed ? 0 : m) - (computed ? m : 0);  // the oracle counts the rest
      return up;
    }
    void commit() {
      this->learn(this->m_i.view());
      counted = proposed;
    }
    Uplink<Real> reply_uncounted(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      if (!anchor(down.flags, down, ctx)) return cannot(ReplyStatus::kNeedsBroadcast, down);
      const View<Real> x = down.parts[0].values;
      if (shared_coin(ctx.seed, down.round, p)) {
        next.assign(x.begin(), x.end());
        next_round = down.round;
      }
      Vec<Real>& k_i = ctx.scratch.vec(0, x.size());
      const Batch batch = batch_of(this->run_context, ctx, down.round);
      if (batch.empty()) return this->propose(k_i, ctx.oracle.loss_and_gradient(x, {}, k_i), down, ctx);
      const double loss = gradient_difference<Real>(ctx, x, w, batch, k_i, ctx.scratch.vec(1, x.size()));
      axpy<Real>(Real(1), grad_w, k_i);
      return this->propose(k_i, loss, down, ctx);
    }
    bool accepts(const Downlink<Real>& down, bool is_resync) const {
      const std::size_t count = down.parts.size();
      return (is_resync ? count == 1 || count == 2 : count == 1) &&
             all_dense(down.parts, this->run_context.d);
    }
    // Takes w, and also h_i if the client lost it.
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>& ctx) {
      const View<Real> point = resync.parts[0].values;
      w.assign(point.begin(), point.end());
      w_round = resync.flags & ~kStateToo;
      renew(ctx);
      if ((resync.flags & kStateToo) == 0) return;
      // A client that is asked in every round has already counted ∇f_i(w), unless w is new in this round.
      const bool is_new = w_round > 0 ? w_round + 1 == resync.round : resync.round == 0;
      counted = is_new ? kNone : w_round;
      this->h_i.assign(w.size(), Real(0));
      if (resync.parts.size() > 1) add_decoded<Real>(resync.parts[1], Real(1), this->h_i);
    }
  };
  static constexpr std::uint32_t kStateToo = 1u << 31, kNone = UINT32_MAX;

  struct Server : ShiftServer<Real> {
    using Base = ShiftServer<Real>;
    using Base::t, Base::x;
    double p;
    Vec<Real> w;
    std::uint32_t w_round = 0;

    Server(const RunContext<Real>& s, const Params& params) : Base(s, params), p(*params.p), w(s.x0) {}
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.w);
      visit(self.w_round);
    }

    Downlink<Real> broadcast() const { return {t, w_round, {Payload<Real>::dense(x)}}; }
    std::optional<Downlink<Real>> resync(ClientId i, ReplyStatus lacks) const {
      Downlink<Real> down{t, w_round, {Payload<Real>::dense(w)}};
      if (lacks == ReplyStatus::kNeedsBroadcast) return down;
      const auto own = this->h_of.restore(i, t);
      if (!own) return std::nullopt;
      down.flags |= kStateToo;
      if (own->parts.size() > 0) down.parts.push_back(own->parts[0]);
      return down;
    }
    void apply(Replies<Real> uplinks) {
      if (shared_coin(this->run_context.seed, t, p)) {
        w = x;
        w_round = t;
      }
      Base::apply(uplinks);
    }
  };
};

}  // namespace gradwire
