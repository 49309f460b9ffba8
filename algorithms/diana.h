// DIANA — Mishchenko, Gorbunov, Takáč, Richtárik, arXiv:1901.09269, Algorithm 1.
//
//   m_i = C_i(∇f_i(x^t) − h_i),  h_i ← h_i + α m_i                     client i, sends m_i; h_i starts at 0
//   g^t = h + mean_{i∈S} m_i (the old h),  h ← h + α (1/n) Σ_{i∈S} m_i   server
//   x^{t+1} = x^t − γ g^t                                              server, sends x^{t+1}
//
// Theory: α = 1/(1+ω), A = ω/n.
//   f_i convex: γ = 1/(L_max (1 + 6A))  (arXiv:1901.09269, Theorem 1 with M = 4A/α)
//   nonconvex:  γ = 1/(10 L √(1+A) (2+ω)), as in the experiments of the MARINA paper (arXiv:2102.07845), but
//               at most nonconvex_bound(), which is derived below
// With client weights w_i, A = ω max w_i, and sums with the weights w_i replace the means.
#pragma once

#include <algorithm>
#include <cmath>

#include "algorithms/core/params.h"
#include "algorithms/support/gradients.h"
#include "algorithms/support/mirror.h"
#include "algorithms/support/server_base.h"
#include "base/config_error.h"
#include "base/value.h"

namespace gradwire {

// Parameters of all algorithms with shifts h_i.
struct ShiftParams {
  StepSize step_size;
  std::optional<double> alpha;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("alpha", self.alpha, "learning rate of the shifts; theory: 1/(1+omega)");
  }
  void resolve_alpha(const Theory& theory, const Assumptions& assume) {
    const double most = 1 / (1 + theory.compressor.omega);
    if (!alpha) alpha = most;
    check_positive(*alpha, "alpha");
    assume.at_most("alpha", *alpha, most, "1/(1 + omega)");
  }
  // Returns the compressor constants for theorems with α = 1/(1+ω).
  CompressorConstants counted(const Theory& theory) const {
    return counted_as(theory.compressor, 1 / *alpha - 1);
  }
  // Returns 1/(L + L~ √(2A (1+ω) (3+2ω))). Derivation: let H = Σ w_i ‖h_i − ∇f_i(x)‖² and D = ‖x⁺ − x‖². For
  // α = 1/(1+ω), E‖g − ∇f‖² ≤ A H and E H⁺ ≤ (1 − α/2) H + (1 + 2/α) L~² D. So f + γ (A/α) H decreases by at
  // least (γ/2) ‖∇f‖² in a round.
  static double nonconvex_bound(const Smoothness& s, const CompressorConstants& q) {
    return 1 / (s.L + s.L_tilde() * std::sqrt(2 * q.A * (1 + q.omega) * (3 + 2 * q.omega)));
  }
};

struct DianaParams : ShiftParams {
  GradientParams gradient;
  static constexpr AlgorithmTraits traits{
      .name = "diana",
      .summary = "compressed differences to learned shifts h_i",
      .reference = "Mishchenko et al., arXiv:1901.09269",
      .compressor_class = CompressorClass::kUnbiased,
      .stochastic = true,
      .client_state = ClientState::kMirrored,
      .adds_replies = true,
      .shows_early = true,
  };
  static void fields(auto& self, auto&& visit) {
    ShiftParams::fields(self, visit);
    GradientParams::fields(self.gradient, visit);
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    resolve_alpha(theory, Assumptions(traits.name, step_size, theory, warnings));
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    const CompressorConstants q = counted(theory);
    step_size.resolve(
        s.convex ? 1 / (s.L_max() * (1 + 6 * theory.compressor.A))
                 : std::min(1 / (10 * s.L * std::sqrt(1 + q.A) * (2 + q.omega)), nonconvex_bound(s, q)));
  }
  // Returns the function of Theorem 1, or f − f* + γ (A/α) H of nonconvex_bound().
  Lyapunov lyapunov(const Theory& theory) const {
    const Smoothness& s = need_to_monitor(theory);
    const double gamma = *step_size.value;
    if (s.convex && s.mu > 0)
      return {.distance = 1,
              .shifts = 4 * theory.compressor.A / *alpha * gamma * gamma,
              .y = Lyapunov::Shifted::kToOptimum,
              .rate = std::max(1 - std::min(1.0, gamma * s.mu), 1 - *alpha / 2)};
    const CompressorConstants q = counted(theory);
    if (gamma > nonconvex_bound(s, q) * (1 + 1e-9))
      refuse_monitor("diana: if f is not strongly convex, the theorem needs step_size = " +
                     number_text(nonconvex_bound(s, q)) + " or less");
    return {.gap = 1, .shifts = gamma * q.A / *alpha};
  }
};

// The common part of clients with shifts: h_i, and the message m_i = C(v − h_i) for the algorithm's gradient
// estimate v.
template <class Real>
struct ShiftClient {
  const RunContext<Real>& run_context;
  Real alpha;
  Vec<Real> h_i;
  PayloadBuffer<Real> m_i;

  ShiftClient(const RunContext<Real>& s, const ShiftParams& p)
      : run_context(s), alpha(Real(*p.alpha)), h_i(s.d) {}
  static void fields(auto& self, auto&& visit) { visit(self.h_i); }

  // Proposes m_i for the estimate v; overwrites v.
  Uplink<Real> propose(Vec<Real>& v, double loss, const Downlink<Real>& down,
                       const ClientContext<Real>& ctx) {
    return reply_of(
        down, loss,
        compress_shifted<Real>(ctx.compressor, v, h_i, ctx.draw_key(down.round), ctx.scratch, m_i));
  }
  void learn(const Payload<Real>& m) { add_decoded<Real>(m, alpha, h_i); }
  void commit(const Uplink<Real>& used) { learn(used.parts[0]); }
  void adopt(const Downlink<Real>& resync, const ClientContext<Real>&) {
    adopt_vector(resync, run_context.d, h_i);
  }
};

template <class Real>
struct ShiftServer : ModelServer<Real> {
  using Base = ModelServer<Real>;
  using Base::run_context, Base::t, Base::x;
  Real gamma, alpha;
  Vec<Real> h, g;  // g is work space
  Mirror<Real> h_of;

  ShiftServer(const RunContext<Real>& s, const ShiftParams& p)
      : Base(s), gamma(Real(*p.step_size.value)), alpha(Real(*p.alpha)), h(s.d), g(s.d), h_of(s) {}
  static void fields(auto& self, auto&& visit) {
    Base::fields(self, visit);
    visit(self.h);
    visit(self.h_of.rows());
  }

  std::optional<Downlink<Real>> resync(ClientId i, ReplyStatus) const { return h_of.restore(i, t); }
  LyapunovState<Real> lyapunov_state() const { return {.shifts = h_of.rows()}; }
  // Computes h ← h + α Σ_{i∈S} w_i (part k of client i's reply).
  void learn(Replies<Real> uplinks, std::size_t k) {
    add_weighted<Real>(run_context, uplinks, k, alpha, h);
    for (const auto& up : uplinks) h_of.add(up, k, alpha);
  }
  void apply(Replies<Real> uplinks) {
    g = h;
    add_mean_of_replies<Real>(run_context, uplinks, 0, Real(1), g);
    learn(uplinks, 0);
    axpy<Real>(-gamma, g, x);
    ++t;
  }
};

template <class Real>
struct Diana {
  using Params = DianaParams;
  using Server = ShiftServer<Real>;

  struct Client : ShiftClient<Real> {
    GradientMessage<Real> message;

    Client(const RunContext<Real>& s, const Params& p) : ShiftClient<Real>(s, p), message(p.gradient) {}

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const double loss =
          message.make(this->run_context, ctx, down.round, down.parts[0].values, this->h_i, this->m_i);
      return reply_of(down, loss, this->m_i.view());
    }
  };
};

}  // namespace gradwire
