// The smallest value of a convex function, to rounding.
#pragma once

#include <optional>
#include <vector>

#include "simulation/optimum/mean_function.h"

namespace gradwire {

struct Minimum {
  double value = 0;
  std::vector<double> x;  // where, about; shape (d)
};

// Damped Newton steps from 0, by Cholesky factors of the Hessian. The half decrement g^T H^-1 g / 2, an
// estimate of f(x) - f*, ends below 1e-17 |f|. Where f has no minimiser, its infimum. Nothing: there is no
// Hessian in closed form, or 200 steps were too few. Takes O(d^3) a step. REQUIRES: f is convex.
std::optional<Minimum> newton_minimum(MeanFunction& f);

// The accelerated gradient algorithm with step 1 / L, restarted when the gradient points along the last step
// (O'Donoghue and Candes, arXiv 1204.3982). It ends when ||g||^2 / (2 mu), a bound on f(x) - f*, is below
// 1e-16 |f|. Nothing: 200,000 steps were too few. REQUIRES: f is L-smooth and mu-strongly convex, mu > 0.
std::optional<Minimum> accelerated_minimum(MeanFunction& f, double L, double mu);

}  // namespace gradwire
