// Adam — Kingma, Ba, arXiv:1412.6980, Algorithm 1.
//
//   m ← β1 m + (1−β1) g,   v ← β2 v + (1−β2) g²                  both start at 0; t = 1, 2, ...
//   y ← y − γ m̂ / (√v̂ + ε),   m̂ = m/(1−β1^t),   v̂ = v/(1−β2^t)
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "algorithms/optimizers/rules.h"

namespace gradwire {

struct Adam {
  static constexpr std::string_view name = "adam";
  static constexpr std::string_view summary = "Adam (arXiv:1412.6980), with bias correction";
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool operator==(const Adam&) const = default;

  static void fields(auto& self, auto&& visit) {
    visit("beta1", self.beta1, "decay of m", {.high = 1, .high_open = true});
    visit("beta2", self.beta2, "decay of v", {.high = 1, .high_open = true});
    visit("eps", self.eps, "added to the square root of v", {.low_open = true});
  }

  template <class Real>
  void step(std::uint32_t k, Real gamma, Vec<Real>& g, Vec<Real>& y, Scratch<Real>& scratch) const {
    Vec<Real>& m = scratch.vec(kOptimizerVec, g.size());
    Vec<Real>& v = scratch.vec(kOptimizerVec + 1, g.size());
    if (k == 0) {
      std::fill(m.begin(), m.end(), Real(0));
      std::fill(v.begin(), v.end(), Real(0));
    }
    const Real b1 = Real(beta1), b2 = Real(beta2), added = Real(eps);
    const Real correct_m = Real(1 / (1 - integer_power(beta1, k + 1)));
    const Real correct_v = Real(1 / (1 - integer_power(beta2, k + 1)));
    for (std::size_t j = 0; j < y.size(); ++j) {
      m[j] = b1 * m[j] + (1 - b1) * g[j];
      v[j] = b2 * v[j] + (1 - b2) * (g[j] * g[j]);
      y[j] -= gamma * (correct_m * m[j]) / (std::sqrt(correct_v * v[j]) + added);
    }
  }
};

}  // namespace gradwire
