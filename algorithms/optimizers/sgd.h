// Gradient steps, optionally with Polyak's momentum:
//
//   b ← β b + g,   y ← y − γ b          b starts at 0; β = 0 gives y ← y − γ g
#pragma once

#include <algorithm>
#include <string_view>

#include "algorithms/optimizers/rules.h"

namespace gradwire {

struct Sgd {
  static constexpr std::string_view name = "sgd";
  static constexpr std::string_view summary = "y - gamma g; momentum beta: y - gamma b, b = beta b + g";
  double momentum = 0;
  bool operator==(const Sgd&) const = default;

  static void fields(auto& self, auto&& visit) {
    visit("momentum", self.momentum, "beta", {.high = 1, .high_open = true});
  }

  template <class Real>
  void step(std::uint32_t k, Real gamma, Vec<Real>& g, Vec<Real>& y, Scratch<Real>& scratch) const {
    if (momentum == 0) return move(gamma, g, y);
    Vec<Real>& b = scratch.vec(kOptimizerVec, g.size());
    if (k == 0) std::fill(b.begin(), b.end(), Real(0));
    const Real beta = Real(momentum);
    for (std::size_t j = 0; j < b.size(); ++j) b[j] = beta * b[j] + g[j];
    move(gamma, b, y);
  }

 private:
  template <class Real>
  static void move(Real gamma, const Vec<Real>& direction, Vec<Real>& y) {
    for (std::size_t j = 0; j < y.size(); ++j) y[j] -= gamma * direction[j];
  }
};

}  // namespace gradwire
