// DCGD — Khirirat, Feyzmahdavian, Johansson, arXiv:1806.06573; QSGD, arXiv:1610.02132.
//
//   m_i^t   = C_i(∇f_i(x^t))                      client i, sends m_i^t
//   x^{t+1} = x^t − γ mean_{i∈S} m_i^t            server, sends x^{t+1}
//
// Theory (f_i convex): for γ ≤ 1/(L + 2 L_max A), where A = ω/n, or A = ω max w_i with client weights w_i,
//   E‖x^T − x*‖² ≤ (1−γμ)^T ‖x^0 − x*‖² + (2γA/μ) Σ w_i ‖∇f_i(x*)‖².
// If A > 0, x^t converges to x* only if all ∇f_i(x*) = 0.
#pragma once

#include <algorithm>

#include "algorithms/core/params.h"
#include "algorithms/support/gradients.h"
#include "algorithms/support/schedule.h"
#include "algorithms/support/server_base.h"

namespace gradwire {

struct DcgdParams {
  static constexpr AlgorithmTraits traits{
      .name = "dcgd",
      .summary = "distributed compressed gradient descent",
      .reference = "Khirirat et al., arXiv:1806.06573",
      .compressor_class = CompressorClass::kUnbiased,
      .stochastic = true,
      .adds_replies = true,
      .shows_early = true,
  };
  StepSize step_size;
  Schedule schedule;
  GradientParams gradient;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    Schedule::fields(self.schedule, visit);
    GradientParams::fields(self.gradient, visit);
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    schedule.resolve(theory, warnings, !step_size.value);
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    if (!s.convex)
      warnings.push_back("dcgd: the theorem of the step size assumes convex f_i, but these are not convex");
    step_size.resolve(1 / (s.L + 2 * s.L_max() * theory.compressor.A));
  }
  Lyapunov lyapunov(const Theory& theory) const {
    schedule.check_monitor();
    const Smoothness& s = need_to_monitor(theory);
    if (!s.convex || !(s.mu > 0))
      refuse_monitor("dcgd: the theorem needs convex f_i and a strongly convex f");
    const double gamma = *step_size.value;
    return {.distance = 1,
            .rate = 1 - std::min(1.0, gamma * s.mu),
            .floor = 2 * gamma * theory.compressor.A / s.mu};
  }
};

// A client that sends C(∇f_i(x^t; ξ)).
template <class Real>
struct DcgdClient {
  const RunContext<Real>& run_context;
  GradientMessage<Real> message;
  PayloadBuffer<Real> m_i;

  DcgdClient(const RunContext<Real>& s, const auto& p) : run_context(s), message(gradient_params(p)) {}
  static void fields(auto&, auto&&) {}

  Uplink<Real> reply(const Downlink<Real>& down, const ClientContext<Real>& ctx) {
    const double loss = message.make(run_context, ctx, down.round, down.parts[0].values, {}, m_i);
    return reply_of(down, loss, m_i.view());
  }
  void commit() {}
};

template <class Real>
struct Dcgd {
  using Params = DcgdParams;
  using Client = DcgdClient<Real>;

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    double gamma;
    Schedule schedule;
    Vec<Real> m;  // work space

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s), gamma(*p.step_size.value), schedule(p.schedule), m(s.d) {}

    void apply(Replies<Real> uplinks) {
      std::fill(m.begin(), m.end(), Real(0));
      add_mean_of_replies<Real>(this->run_context, uplinks, 0, Real(1), m);
      axpy<Real>(-Real(gamma * schedule.factor(this->t)), m, this->x);
      ++this->t;
    }
  };
};

}  // namespace gradwire
