// GD: gradient descent, x^{t+1} = x^t − γ mean_i ∇f_i(x^t). It is DCGD without compression.
//
// Theory: γ = 1/L; then avg_t ‖∇f(x^t)‖² ≤ 2 Δ⁰/(γ T), and under PL f(x^T) − f* ≤ (1 − γ μ)^T Δ⁰.
#pragma once

#include "algorithms/dcgd.h"

namespace gradwire {

struct GdParams : DcgdParams {
  static constexpr AlgorithmTraits traits{
      .name = "gd",
      .summary = "gradient descent; with a batch: stochastic gradient descent",
      .reference = "Cauchy, 1847",
      .compressor_class = CompressorClass::kIdentity,
      .stochastic = true,
      .adds_replies = true,
      .shows_early = true,
  };
  void resolve(const Theory& theory, Warnings& warnings) {
    schedule.resolve(theory, warnings, !step_size.value);
    if (!step_size.value) step_size.resolve(1 / need_smoothness(theory, "algorithm.step_size").L);
  }
  Lyapunov lyapunov(const Theory& theory) const {
    schedule.check_monitor();
    return gap_of_gradient_descent(*step_size.value, theory);
  }
};

template <class Real>
struct Gd : Dcgd<Real> {
  using Params = GdParams;
};

}  // namespace gradwire
