// MARINA — Gorbunov, Burlachenko, Li, Richtárik, arXiv:2102.07845, Algorithm 1.
//
//   c_t ~ Be(p), one coin for all clients; c_0 = 1
//   c_t = 1:  m_i = ∇f_i(x^t)                                     client i, sends m_i
//             g^t = (1/n) Σ m_i                                   server
//   c_t = 0:  m_i = C_i(∇f_i(x^t) − ∇f_i(x^{t−1}))
//             g^t = g^{t−1} + (1/n) Σ m_i
//   x^{t+1} = x^t − γ g^t                                         server, sends x^{t+1} and c_{t+1}
//
// Theory: p = ζ/d, so that both kinds of round cost the same on average.
//   Independent compressors: γ = 1/(L + L~ √((1−p) ω/(p n)))  (Theorem 2.1, with L~ in place of L)
//   Compressors with the (A, B) inequality, such as PermK (arXiv:2110.03300, Theorem 4):
//     γ = 1/(L + √((1−p)/p) √((A−B) L₊² + B L_±²))
//   Then E‖∇f(x̂)‖² ≤ 2 Δ⁰/(γ T) for a random iterate x̂.
//   Under the PL condition, with mu: γ = min(1/(L + L~ √(2(1−p) ω/(p n))), p/(2μ)) and
//     E f(x^T) − f* ≤ (1−γμ)^T Δ⁰  (Theorem 2.2; the step for the (A, B) inequality changes in the same way)
// With client weights w_i, sums with the weights w_i replace the means, and A = ω/n gets the factor
// n max w_i.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/core/params.h"
#include "algorithms/support/gradients.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

// Parameters of MARINA and its variants.
struct MarinaCoreParams {
  StepSize step_size;
  std::optional<double> p;
  PlConstant mu;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("p", self.p, "probability of a whole round; theory: zeta/d, and batch/(batch+m) with batches");
    visit("mu", self.mu, kPlMeaning, pl_rules(self.step_size));
  }
  void resolve_p(double value, const Theory& theory, Warnings& warnings) {
    if (!p && value >= 1 && theory.compressor.omega > 0)
      warnings.push_back(
          "p = zeta/d is 1 for a compressor that sends every entry, so that every round is whole; give p, "
          "such as the ratio of the two message sizes");
    if (!p) p = std::min(1.0, value);
    check_probability(*p, "p");
  }
  // Returns f − f* + (γ/(2p)) ‖g − ∇f‖², which decreases by at least (γ/2) ‖∇f‖² in a round. Under the PL
  // condition γ/p replaces γ/(2p), and the function shrinks by the factor 1 − γμ in a round.
  Lyapunov lyapunov(const Theory&) const {
    const double gamma = *step_size.value, pl = mu.or_none();
    return {.gap = 1,
            .estimate = gamma * error_weight(pl) / (2 * *p),
            .of_round = true,
            .rate = 1 - std::min(1.0, gamma * pl)};
  }
};
inline double zeta_share(const Theory& theory) {
  return theory.compressor.zeta / static_cast<double>(theory.d);
}

struct MarinaParams : MarinaCoreParams {
  static constexpr AlgorithmTraits traits{
      .name = "marina",
      .summary = "compressed gradient differences between two points, and occasional whole gradients",
      .reference = "Gorbunov et al., arXiv:2102.07845",
      .compressor_class = CompressorClass::kUnbiased,
      .strict = true,
      .needs_all_replies = true,
      .partial = false,
      .client_state = ClientState::kRecomputable,
      .adds_replies = true,
  };
  void resolve(const Theory& theory, Warnings& warnings) {
    resolve_p(zeta_share(theory), theory, warnings);
    const double pl = mu.resolve(theory);
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    const double error = error_weight(pl) * (1 - *p) / *p;
    const double A = theory.compressor.A, B = theory.compressor.B;
    const double plus = B > 0 ? s.L_plus_bound() : s.L_tilde(), pm = B > 0 ? s.L_pm_bound() : 0;
    step_size.resolve(pl_step(1 / (s.L + std::sqrt(error * ((A - B) * plus * plus + B * pm * pm))), *p, pl));
  }
};

// The flags of a broadcast, which carry the coin of its round.
enum MarinaFlags : std::uint32_t { kCompressedRound = 0, kWholeRound = 1 };

template <class Real>
struct MarinaServer : ModelServer<Real> {
  using Base = ModelServer<Real>;
  using Base::run_context, Base::t, Base::x;
  Real gamma;
  double p;
  Vec<Real> x_prev, g;

  MarinaServer(const RunContext<Real>& s, const MarinaCoreParams& params)
      : Base(s), gamma(Real(*params.step_size.value)), p(*params.p), g(s.d) {}
  static void fields(auto& self, auto&& visit) {
    Base::fields(self, visit);
    visit(self.x_prev);
    visit(self.g);
  }

  bool whole() const { return t == 0 || shared_coin(run_context.seed, t, p); }
  Downlink<Real> broadcast() const {
    return {t, whole() ? kWholeRound : kCompressedRound, {Payload<Real>::dense(x)}};
  }
  std::optional<Downlink<Real>> resync(ClientId, ReplyStatus) const { return previous_point(t, x_prev); }
  LyapunovState<Real> lyapunov_state() const { return {.g = g}; }
  void apply(Replies<Real> uplinks) {
    if (whole()) std::fill(g.begin(), g.end(), Real(0));
    add_weighted<Real>(run_context, uplinks, 0, Real(1), g);
    step();
  }
  void step() {
    x_prev = x;
    axpy<Real>(-gamma, g, x);
    ++t;
  }
};

// The server of algorithms without client state. Compressed rounds broadcast x^t and x^{t−1}.
template <class Real>
struct TwoPointServer : MarinaServer<Real> {
  using Base = MarinaServer<Real>;
  using Base::Base;

  Downlink<Real> broadcast() const {
    if (this->whole()) return Base::broadcast();
    return {this->t, kCompressedRound, {Payload<Real>::dense(this->x), Payload<Real>::dense(this->x_prev)}};
  }
  std::optional<Downlink<Real>> resync(ClientId, ReplyStatus) const { return Downlink<Real>{}; }

 protected:
  // Returns all clients in whole rounds, else the clients of `r` draws.
  void drawn_cohort(std::uint32_t r, std::vector<ClientId>& out) const {
    if (this->whole()) return all_clients(this->run_context.n, out);
    std::vector<ClientDraws> drawn;
    draw_clients(this->run_context.seed, this->t, this->run_context.n, r, drawn);
    out.clear();
    for (const ClientDraws& d : drawn) out.push_back(d.client);
  }
};

// Returns whether a message has the parts of a broadcast of TwoPointServer. A resync has no parts, because
// the client has no state to restore.
template <class Real>
bool accepts_points(const Downlink<Real>& down, bool is_resync, std::size_t d) {
  const std::size_t count = is_resync ? 0 : down.flags == kWholeRound ? 1 : 2;
  return down.parts.size() == count && all_dense(down.parts, d);
}

template <class Real>
struct Marina {
  using Params = MarinaParams;
  using Server = MarinaServer<Real>;

  struct Client {
    Vec<Real> grad_prev, grad;  // ∇f_i(x^{t−1}), and the proposal ∇f_i(x^t)
    PayloadBuffer<Real> q_i;

    Client(const RunContext<Real>&, const Params&) {}
    static void fields(auto& self, auto&& visit) { visit(self.grad_prev); }

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      if (down.flags == kCompressedRound && grad_prev.empty()) return cannot(ReplyStatus::kNeedsState, down);
      const View<Real> x = down.parts[0].values;
      grad.resize(x.size());
      const double loss = ctx.oracle.loss_and_gradient(x, {}, grad);
      if (down.flags == kWholeRound) return reply_of(down, loss, Payload<Real>::dense(grad));
      Vec<Real>& difference = ctx.scratch.vec(0, x.size());
      const auto subtract = [&](std::size_t first, std::size_t end) {
        for (std::size_t j = first; j < end; ++j) difference[j] = grad[j] - grad_prev[j];
      };
      return reply_of(
          down, loss,
          compress_made(ctx.compressor, difference, ctx.draw_key(down.round), ctx.scratch, q_i, subtract));
    }
    void commit() { grad_prev.swap(grad); }
    void adopt(const Downlink<Real>& resync, const ClientContext<Real>& ctx) {
      // The resync has x^{t−1}: the client computes one gradient, and the server need not store n vectors.
      grad_prev.clear();
      if (resync.parts.size() == 0) return;
      const View<Real> x_prev = resync.parts[0].values;
      grad_prev.resize(x_prev.size());
      ctx.oracle.loss_and_gradient(x_prev, {}, grad_prev);
    }
  };
};

}  // namespace gradwire
