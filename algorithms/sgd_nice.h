// SGD-NICE — Gower, Loizou, Qian, Sailanbayev, Shulgin, Richtárik, arXiv:1901.09401: proximal SGD with nice
// sampling.
//
//   S: τ = participation · n clients, uniform without replacement
//   x^{t+1} = prox_{γR}(x^t − γ mean_{i∈S} ∇f_i(x^t)),  R(x) = l1 ‖x‖₁      server, sends x^{t+1}
//
// With clients.weights w_i, the mean is that of n w_i ∇f_i, and the constants are those of the functions
// n w_i f_i.
//
// The metrics measure f without R. Theory (f_i convex): γ = 1/(2 𝓛),
// 𝓛 = n(τ−1)/(τ(n−1)) L + (n−τ)/(τ(n−1)) L_max (Proposition 3.8); then
// E‖x^t − x*‖² ≤ (1−γμ)^t ‖x^0 − x*‖² + 2γσ²/μ with σ² = (n−τ)/(τ(n−1)) mean‖∇f_i(x*)‖² (Theorem 3.1).
#pragma once

#include <algorithm>

#include "algorithms/dcgd.h"

namespace gradwire {

struct SgdNiceParams {
  static constexpr AlgorithmTraits traits{
      .name = "sgd_nice",
      .summary = "proximal SGD: gradients of a uniform sample of clients, then a prox step",
      .reference = "Gower et al., arXiv:1901.09401",
      .compressor_class = CompressorClass::kIdentity,
      .stochastic = true,
      .theory_knows_sampling = true,
      .adds_replies = true,
      .shows_early = true,
  };
  StepSize step_size;
  double l1 = 0;
  Schedule schedule;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("l1", self.l1, "weight of the l1 norm, whose prox follows each step; 0 means no prox");
    Schedule::fields(self.schedule, visit);
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    if (!(l1 >= 0)) throw ConfigError("algorithm.l1", "must not be negative");
    schedule.resolve(theory, warnings, !step_size.value);
    if (step_size.value) return;
    const Smoothness& s = need_smoothness(theory, "algorithm.step_size");
    if (!s.convex)
      warnings.push_back(
          "sgd_nice: the theorem of the step size assumes convex f_i, but these are not convex");
    const double n = theory.n, tau = replies_of(theory);
    const double expected = theory.n == 1 ? s.L
                                          : n * (tau - 1) / (tau * (n - 1)) * s.L +
                                                (n - tau) / (tau * (n - 1)) * s.L_max_weighted();
    step_size.resolve(1 / (2 * expected));
  }
};

template <class Real>
struct SgdNice {
  using Params = SgdNiceParams;
  using Client = DcgdClient<Real>;

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::t, Base::x;
    double gamma, l1;
    Schedule schedule;
    Vec<Real> m;  // work space

    Server(const RunContext<Real>& s, const Params& p)
        : Base(s), gamma(*p.step_size.value), l1(p.l1), schedule(p.schedule), m(s.d) {}

    void apply(Replies<Real> uplinks) {
      const double step = gamma * schedule.factor(t);
      std::fill(m.begin(), m.end(), Real(0));
      add_mean_of_replies<Real>(this->run_context, uplinks, 0, Real(1), m);
      axpy<Real>(-Real(step), m, x);
      const Real threshold = Real(step * l1);
      for (Real& v : x)
        v = v > threshold ? v - threshold : v < -threshold ? v + threshold : l1 > 0 ? Real(0) : v;
      ++t;
    }
  };
};

}  // namespace gradwire
