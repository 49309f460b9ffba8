// DASHA — Tyurin, Richtárik, arXiv:2202.01268, Algorithm 1.
//
//   x^{t+1} = x^t − γ g^t                                            server, sends x^{t+1}
//   h_i⁺ = ∇f_i(x^{t+1}),  m_i = C_i(h_i⁺ − h_i − a (g_i − h_i))      client i, sends m_i
//   h_i ← h_i⁺,  g_i ← g_i + m_i
//   g^{t+1} = g^t + (1/n) Σ m_i                                      server
//
// h_i^0 = g_i^0 = ∇f_i(x^0), sent whole. Later messages are never dense, and no coin synchronises the
// clients.
//
// DASHA-PAGE and DASHA-MVR replace h_i⁺ by minibatch estimators, with one batch B of `batch` samples at both
// points:
//   page  h_i⁺ = ∇f_i(x^{t+1}) with probability p (one coin for all clients),
//         else h_i + ∇f_i(x^{t+1}; B) − ∇f_i(x^t; B)
//   mvr   h_i⁺ = ∇f_i(x^{t+1}; B) + (1−b) (h_i − ∇f_i(x^t; B))
//
// Theory: a = 1/(2ω+1), and
//   dasha  γ = 1/(L + L~ √(16 ω(2ω+1)/n))  (Theorem 6.1)
//   page   γ = 1/(L + √(48 ω(2ω+1)/n ((1−p) L_s²/batch + L~²) + 2 (1−p) L_s²/(p n batch))),
//          p = batch/(m+batch)  (Theorem 6.4)
//   mvr    γ = 1/(L + √(96 ω(2ω+1)/n ((1−b)² L_s²/batch + L~²) + 4 (1−b)² L_s²/(b n batch)))  (Theorem 6.7)
// ω/n is the constant A of the compressors. With client weights w_i, it gets the factor n max w_i, and so
// does the 1/n in the last terms.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/core/params.h"
#include "algorithms/support/gradients.h"
#include "algorithms/support/mirror.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

struct DashaCoreParams {
  StepSize step_size;
  std::optional<double> a;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("a", self.a, "momentum of the compressed differences; theory: 1/(2 omega + 1)");
  }
  void resolve_a(const Theory& theory, const Assumptions& assume) {
    const double most = 1 / (2 * theory.compressor.omega + 1);
    if (!a) a = most;
    check_probability(*a, "a");
    assume.at_most("a", *a, most, "1/(2 omega + 1)");
  }
  // Returns 1/(L + √(scale A (2ω+1) (rest + L~²) + more)).
  double step(const Theory& theory, double scale, double rest, double more) const {
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    const CompressorConstants q = counted_as(theory.compressor, (1 / *a - 1) / 2);
    const double L_tilde = s.L_tilde();
    return 1 / (s.L + std::sqrt(scale * q.A * (2 * q.omega + 1) * (rest + L_tilde * L_tilde) + more));
  }
};

struct DashaParams : DashaCoreParams {
  static constexpr AlgorithmTraits traits{
      .name = "dasha",
      .summary = "compressed gradient differences without dense rounds",
      .reference = "Tyurin, Richtarik, arXiv:2202.01268",
      .compressor_class = CompressorClass::kUnbiased,
      .strict = true,
      .needs_all_replies = true,
      .partial = false,
      .client_state = ClientState::kMirrored | ClientState::kRecomputable,
      .adds_replies = true,
  };
  void resolve(const Theory& theory, Warnings& warnings) {
    resolve_a(theory, Assumptions(traits.name, step_size, theory, warnings));
    if (!step_size.value) step_size.resolve(step(theory, 16, 0, 0));
  }
};

struct DashaPageParams : DashaCoreParams {
  static constexpr AlgorithmTraits traits{
      .name = "dasha_page",
      .summary = "DASHA on PAGE's minibatch estimator",
      .reference = "Tyurin, Richtarik, arXiv:2202.01268",
      .compressor_class = CompressorClass::kUnbiased,
      .strict = true,
      .needs_all_replies = true,
      .partial = false,
      .stochastic = true,
      .client_state = ClientState::kMirrored | ClientState::kPrivate | ClientState::kReplica,
      .theory_knows_batches = true,
      .adds_replies = true,
  };
  std::optional<double> p;

  static void fields(auto& self, auto&& visit) {
    DashaCoreParams::fields(self, visit);
    visit("p", self.p, "probability of full gradients; theory: batch/(m+batch)");
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    resolve_a(theory, Assumptions(traits.name, step_size, theory, warnings));
    const double batch = theory.batch;
    if (!p) p = theory.batch == 0 ? 1 : batch / (theory.m() + batch);
    check_probability(*p, "p");
    if (step_size.value) return;
    if (theory.batch == 0) return step_size.resolve(step(theory, 16, 0, 0));
    const double L_s = sample_smoothness(need_smoothness(theory, "algorithm.step_size"));
    const double rest = (1 - *p) * L_s * L_s / batch;
    step_size.resolve(step(theory, 48, rest, 2 * rest * theory.skew() / (*p * theory.n)));
  }
};

struct DashaMvrParams : DashaCoreParams {
  static constexpr AlgorithmTraits traits{
      .name = "dasha_mvr",
      .summary = "DASHA on momentum variance reduction",
      .reference = "Tyurin, Richtarik, arXiv:2202.01268",
      .compressor_class = CompressorClass::kUnbiased,
      .strict = true,
      .needs_all_replies = true,
      .partial = false,
      .stochastic = true,
      .client_state = ClientState::kMirrored | ClientState::kPrivate | ClientState::kReplica,
      .theory_knows_batches = true,
      .adds_replies = true,
  };
  double b = 0.1;

  static void fields(auto& self, auto&& visit) {
    DashaCoreParams::fields(self, visit);
    visit("b", self.b, "momentum of the estimator: 1 forgets, near 0 remembers");
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    resolve_a(theory, Assumptions(traits.name, step_size, theory, warnings));
    check_probability(b, "b");
    if (step_size.value) return;
    if (theory.batch == 0) return step_size.resolve(step(theory, 96, 0, 0));
    const double L_s = sample_smoothness(need_smoothness(theory, "algorithm.step_size"));
    const double rest = (1 - b) * (1 - b) * L_s * L_s / theory.batch;
    step_size.resolve(step(theory, 96, rest, 4 * rest * theory.skew() / (b * theory.n)));
  }
};

// The common part of the clients: h_i, g_i and the message for the algorithm's estimate h_i⁺.
template <class Real>
struct DashaClient {
  const RunContext<Real>& run_context;
  Real a;
  Vec<Real> h_i, g_i, h_next;  // h_next is the proposal h_i⁺
  PayloadBuffer<Real> m_i;

  DashaClient(const RunContext<Real>& s, const DashaCoreParams& p)
      : run_context(s), a(Real(*p.a)), g_i(s.d) {}
  static void fields(auto& self, auto&& visit) {
    visit(self.h_i);
    visit(self.g_i);
  }

  Uplink<Real> first_reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
    const View<Real> x = down.parts[0].values;
    h_next.resize(x.size());
    const double loss = ctx.oracle.loss_and_gradient(x, {}, h_next);
    Vec<Real>& whole = ctx.scratch.vec(0, x.size());
    whole = h_next;
    return reply_of(down, loss, m_i.whole(whole));
  }
  // Proposes the message for h_next.
  Uplink<Real> propose(double loss, const Downlink<Real>& down, const ClientContext<Real>& ctx) {
    Vec<Real>& v = ctx.scratch.vec(0, h_next.size());
    const auto fill = [&](std::size_t first, std::size_t end) {
      for (std::size_t j = first; j < end; ++j) v[j] = h_next[j] - h_i[j] - a * (g_i[j] - h_i[j]);
    };
    return reply_of(down, loss,
                    compress_made(ctx.compressor, v, ctx.draw_key(down.round), ctx.scratch, m_i, fill));
  }
  void commit() {
    h_i.swap(h_next);
    add_decoded<Real>(m_i.view(), Real(1), g_i);
  }
  // Accepts a resync with the parts x^{t−1} and g_i, or without parts.
  bool accepts(const Downlink<Real>& down, bool is_resync) const {
    const std::size_t count = down.parts.size();
    return (is_resync ? count == 0 || count == 2 : count == 1) && all_dense(down.parts, run_context.d);
  }
  void adopt(const Downlink<Real>& resync, const ClientContext<Real>& ctx) {
    h_i.clear();
    g_i.assign(run_context.d, Real(0));
    if (resync.parts.size() == 0) return;
    add_decoded<Real>(resync.parts[1], Real(1), g_i);
    h_i.resize(run_context.d);
    ctx.oracle.loss_and_gradient(resync.parts[0].values, {}, h_i);
  }
};

template <class Real>
struct DashaServer : ModelServer<Real> {
  using Base = ModelServer<Real>;
  using Base::run_context, Base::t, Base::x;
  Real gamma;
  Vec<Real> x_prev, g;
  Mirror<Real> g_of;

  DashaServer(const RunContext<Real>& s, const DashaCoreParams& p)
      : Base(s), gamma(Real(*p.step_size.value)), g(s.d), g_of(s) {}
  static void fields(auto& self, auto&& visit) {
    Base::fields(self, visit);
    visit(self.x_prev);
    visit(self.g);
    visit(self.g_of.rows());
  }

  std::optional<Downlink<Real>> resync(ClientId i, ReplyStatus) const {
    const auto own = g_of.restore(i, t);
    if (!own || own->parts.size() == 0) return own;
    return Downlink<Real>{t, 0, {Payload<Real>::dense(x_prev), own->parts[0]}};
  }
  void apply(Replies<Real> uplinks) {
    add_weighted<Real>(run_context, uplinks, 0, Real(1), g);
    for (const auto& up : uplinks) g_of.add(up, 0, Real(1));
    x_prev = x;
    axpy<Real>(-gamma, g, x);
    ++t;
  }
};

template <class Real>
struct Dasha {
  using Params = DashaParams;
  using Server = DashaServer<Real>;

  struct Client : DashaClient<Real> {
    Client(const RunContext<Real>& s, const Params& p) : DashaClient<Real>(s, p) {}

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      if (ctx.first || this->h_i.empty()) return this->first_reply(down, ctx);
      const View<Real> x = down.parts[0].values;
      this->h_next.resize(x.size());
      return this->propose(ctx.oracle.loss_and_gradient(x, {}, this->h_next), down, ctx);
    }
  };
};

// The common client of PAGE and MVR, which keeps x^t in addition to x^{t+1}. A client that lost its h_i
// restarts it from the gradient at x^t.
template <class Real>
struct DashaBatchClient : DashaClient<Real> {
  using Base = DashaClient<Real>;
  LastPoints<Real> points;

  DashaBatchClient(const RunContext<Real>& s, const DashaCoreParams& p) : Base(s, p) {}
  static void fields(auto& self, auto&& visit) {
    Base::fields(self, visit);
    LastPoints<Real>::fields(self.points, visit);
  }
  void adopt(const Downlink<Real>& resync, const ClientContext<Real>& ctx) {
    Base::adopt(resync, ctx);
    points.adopt(resync);
  }
};

template <class Real>
struct DashaPage {
  using Params = DashaPageParams;
  using Server = DashaServer<Real>;

  struct Client : DashaBatchClient<Real> {
    double p;
    Client(const RunContext<Real>& s, const Params& params)
        : DashaBatchClient<Real>(s, params), p(*params.p) {}

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      if (!this->points.follow(down)) return cannot(ReplyStatus::kNeedsState, down);
      if (ctx.first || this->h_i.empty()) return this->first_reply(down, ctx);
      const View<Real> x = down.parts[0].values;
      Vec<Real>& h_next = this->h_next;
      h_next.resize(x.size());
      double loss = 0;
      if (shared_coin(ctx.seed, down.round, p)) {
        loss = ctx.oracle.loss_and_gradient(x, {}, h_next);
      } else {
        loss = gradient_difference<Real>(ctx, x, this->points.x_prev,
                                         batch_of(this->run_context, ctx, down.round), h_next,
                                         ctx.scratch.vec(0, x.size()));
        axpy<Real>(Real(1), this->h_i, h_next);
      }
      return this->propose(loss, down, ctx);
    }
  };
};

template <class Real>
struct DashaMvr {
  using Params = DashaMvrParams;
  using Server = DashaServer<Real>;

  struct Client : DashaBatchClient<Real> {
    Real b;
    Client(const RunContext<Real>& s, const Params& params)
        : DashaBatchClient<Real>(s, params), b(Real(params.b)) {}

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      if (!this->points.follow(down)) return cannot(ReplyStatus::kNeedsState, down);
      if (ctx.first || this->h_i.empty()) return this->first_reply(down, ctx);
      const View<Real> x = down.parts[0].values;
      Vec<Real>& h_next = this->h_next;
      Vec<Real>& before = ctx.scratch.vec(0, x.size());
      h_next.resize(x.size());
      const Batch batch = batch_of(this->run_context, ctx, down.round);
      const double loss = ctx.oracle.two_gradients(x, this->points.x_prev, batch, h_next, before).x;
      for (std::size_t j = 0; j < x.size(); ++j) h_next[j] += (1 - b) * (this->h_i[j] - before[j]);
      return this->propose(loss, down, ctx);
    }
  };
};

}  // namespace gradwire
