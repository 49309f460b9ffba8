// Nesterov's accelerated gradient for strongly convex f — Nesterov, Introductory Lectures on Convex
// Optimization, scheme 2.2.11 with constant momentum.
//
//   y^t = x^t + b (x^t − x^{t−1}),  x^{t+1} = y^t − γ mean_i ∇f_i(y^t)    server, sends y^t; x^{−1} = x^0
//
// b = (√κ − 1)/(√κ + 1), κ = 1/(γ μ). f is evaluated at x; its values may rise in some rounds. Theory: for
// γ = 1/L, f(x^T) − f* ≤ (1 − 1/√κ)^T (f(x^0) − f* + (μ/2) ‖x^0 − x*‖²).
#pragma once

#include <cmath>

#include "algorithms/dcgd.h"
#include "base/config_error.h"

namespace gradwire {

struct NesterovParams {
  static constexpr AlgorithmTraits traits{
      .name = "nesterov",
      .summary = "accelerated gradient descent for strongly convex problems",
      .reference = "Nesterov, Introductory Lectures on Convex Optimization, 2004",
      .compressor_class = CompressorClass::kIdentity,
      .partial = false,
      .adds_replies = true,
      .shows_early = true,
  };
  StepSize step_size;
  std::optional<double> mu;

  static void fields(auto& self, auto&& visit) {
    visit("step_size", self.step_size, "gamma of the server's step");
    visit("mu", self.mu, "strong convexity; theory: the problem's (lambda of l2)");
  }
  void needs(NeededConstants& constants) const {
    if (!step_size.value) constants.smoothness = "algorithm.step_size";
    if (!mu) constants.convexity = "algorithm.mu";
  }
  void resolve(const Theory& theory, Warnings& warnings) {
    mu = Assumptions(traits.name, step_size, theory, warnings).convexity("mu", mu);
    const bool is_plain_theory = !step_size.value && step_size.factor == 1;
    if (!step_size.value) step_size.resolve(1 / need_smoothness(theory, "algorithm.step_size").L);
    if (*step_size.value * *mu > 1)
      throw ConfigError(is_plain_theory ? "algorithm.mu" : "algorithm.step_size",
                        "gamma * mu is above 1, where the momentum is undefined; give a smaller " +
                            std::string(is_plain_theory ? "mu" : "step_size"));
  }
};

template <class Real>
struct Nesterov {
  using Params = NesterovParams;
  using Client = DcgdClient<Real>;

  struct Server : ModelServer<Real> {
    using Base = ModelServer<Real>;
    using Base::run_context, Base::t, Base::x;
    Real gamma, b;
    Vec<Real> y;

    Server(const RunContext<Real>& s, const Params& p) : Base(s), gamma(Real(*p.step_size.value)), y(s.x0) {
      const double root = std::sqrt(1 / (*p.step_size.value * *p.mu));
      b = Real((root - 1) / (root + 1));
    }
    static void fields(auto& self, auto&& visit) {
      Base::fields(self, visit);
      visit(self.y);
    }

    Downlink<Real> broadcast() const { return {t, 0, {Payload<Real>::dense(y)}}; }
    void apply(Replies<Real> uplinks) {
      add_mean_of_replies<Real>(run_context, uplinks, 0, -gamma, y);  // x^{t+1}
      for (std::size_t j = 0; j < x.size(); ++j) {
        const Real x_next = y[j];
        y[j] = x_next + b * (x_next - x[j]);
        x[j] = x_next;
      }
      ++t;
    }
  };
};

}  // namespace gradwire
