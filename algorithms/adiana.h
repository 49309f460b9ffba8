// ADIANA — Li, Kovalev, Qian, Richtárik, arXiv:2002.11364, Algorithm 1: accelerated DIANA for strongly convex
// f_i.
//
//   x^t = θ1 z + θ2 w + (1 − θ1 − θ2) y                                 server, sends x^t and w
//   m_i = C(∇f_i(x^t) − h_i),  s_i = C(∇f_i(w) − h_i),  h_i ← h_i + α s_i   client i, sends m_i, s_i
//   g = h + mean m_i,  h ← h + α mean s_i                               server
//   y⁺ = x^t − η g,  z ← b z + (1−b) x^t + (γ/η)(y⁺ − x^t),  w ← y with probability p,  y ← y⁺
//
// y^0 = z^0 = w^0 = x^0; f is evaluated at y. η = step_size. Theory, with L = L_max:
//   α = 1/(1+ω),  p = min(1, max(1, √(n/(32ω)) − 1)/(2(1+ω))),
//   η = min(1/(2L), n/(64 ω (2p(1+ω) + 1)² L)),
//   θ1 = min(1/4, √(ημ/p)),  θ2 = 1/2,  γ = η/(2(θ1 + ημ)),  b = 1 − γμ.
// With client weights w_i, A = ω max w_i replaces ω/n, and sums with the weights w_i replace the means of the
// proof.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "algorithms/diana.h"

namespace gradwire {

struct AdianaParams : ShiftParams {
  static constexpr AlgorithmTraits traits{
      .name = "adiana",
      .summary = "accelerated DIANA for strongly convex problems",
      .reference = "Li, Kovalev, Qian, Richtarik, arXiv:2002.11364",
      .compressor_class = CompressorClass::kUnbiased,
      .partial = false,
      .client_state = ClientState::kMirrored,
      .adds_replies = true,
  };
  std::optional<double> mu, p;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "eta of the gradient step");
    visit("alpha", self.alpha, "learning rate of the shifts; theory: 1/(1+omega)");
    visit("mu", self.mu, "strong convexity; theory: the problem's");
    visit("p", self.p, "probability that w becomes y; theory: from n and omega");
  }
  void needs(NeededConstants& constants) const {
    if (!step_size.value) constants.smoothness = "algorithm.step_size";
    if (!mu) constants.convexity = "algorithm.mu";
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    const Assumptions assume(traits.name, step_size, theory, warnings);
    if (p) check_probability(*p, "p");
    resolve_alpha(theory, assume);
    mu = assume.convexity("mu", mu);
    const CompressorConstants q = counted(theory);
    const double omega = q.omega, ratio = q.A;  // ω/n
    if (!p) {
      const double root =
          ratio > 0 ? std::sqrt(1 / (32 * ratio)) - 1 : std::numeric_limits<double>::infinity();
      p = std::min(1.0, std::max(1.0, root) / (2 * (1 + omega)));
    }
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    if (!s.convex)
      warnings.push_back("adiana: the theorem of the step size assumes convex f_i, but these are not convex");
    const double L = s.L_max(), inner = 2 * *p * (1 + omega) + 1;
    const double by_noise =
        ratio > 0 ? 1 / (64 * ratio * inner * inner * L) : std::numeric_limits<double>::infinity();
    step_size.resolve(std::min(1 / (2 * L), by_noise));
  }
};

template <class Real>
struct Adiana {
  using Params = AdianaParams;
  static constexpr std::size_t kPartsUp = 2, kPartsDown = 2;

  struct Client : ShiftClient<Real> {
    using Base = ShiftClient<Real>;
    PayloadBuffer<Real> s_i;

    Client(const RunContext<Real>& s, const Params& p) : Base(s, p) {}

    Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
      const View<Real> x = down.parts[0].values, w = down.parts[1].values;
      Vec<Real>& at_w = ctx.scratch.vec(0, x.size());
      ctx.oracle.loss_and_gradient(w, {}, at_w);
      compress_shifted<Real>(ctx.compressor, at_w, this->h_i, ctx.draw_key(down.round, 1), ctx.scratch, s_i);
      Vec<Real>& at_x = ctx.scratch.vec(0, x.size());
      const double loss = ctx.oracle.loss_and_gradient(x, {}, at_x);
      Uplink<Real> up = this->propose(at_x, loss, down, ctx);
      up.parts.push_back(s_i.view());
      return up;
    }
    void commit(const Uplink<Real>& used) { this->learn(used.parts[1]); }
  };

  struct Server : ShiftServer<Real> {
    using Base = ShiftServer<Real>;
    using Base::run_context, Base::t, Base::x, Base::g;
    double p, theta1;
    Real eta, b, gamma_by_eta;
    Vec<Real> y, z, w;

    Server(const RunContext<Real>& s, const Params& params)
        : Base(s, params), p(*params.p), eta(Real(*params.step_size.value)), y(s.x0), z(s.x0), w(s.x0) {
      const double step = *params.step_size.value, mu = *params.mu;
      theta1 = std::min(0.25, std::sqrt(step * mu / p));
      const double gamma = step / (2 * (theta1 + step * mu));
      b = Real(1 - gamma * mu);
      gamma_by_eta = Real(gamma / step);
    }
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.y);
      visit(self.z);
      visit(self.w);
    }

    Downlink<Real> broadcast() const { return {t, 0, {Payload<Real>::dense(x), Payload<Real>::dense(w)}}; }
    void apply(Replies<Real> uplinks) {
      g = this->h;
      add_mean_of_replies<Real>(run_context, uplinks, 0, Real(1), g);
      this->learn(uplinks, 1);
      if (shared_coin(run_context.seed, t, p)) w = y;
      const Real theta = Real(theta1), rest = Real(0.5) - theta;
      for (std::size_t j = 0; j < x.size(); ++j) {
        const Real step = -eta * g[j];  // y⁺ − x
        z[j] = b * z[j] + (1 - b) * x[j] + gamma_by_eta * step;
        y[j] = x[j] + step;
        x[j] = theta * z[j] + Real(0.5) * w[j] + rest * y[j];
      }
      ++t;
    }
    View<Real> model() const { return y; }
  };
};

}  // namespace gradwire
