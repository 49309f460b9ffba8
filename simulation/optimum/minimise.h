// Minimum of a convex function, exact to rounding.
#pragma once

#include <optional>
#include <vector>

#include "simulation/optimum/mean_function.h"

namespace gradwire {

struct Minimum {
  double value = 0;
  std::vector<double> x;  // approximate minimiser, shape (d)
};

// Finds the minimum by damped Newton steps from 0, with Cholesky factors of the Hessian. Stops once the half
// decrement g^T H^-1 g / 2, an estimate of f(x) - f*, is below 1e-17 |f|. If f has no minimiser, finds its
// infimum. Nullopt if the Hessian has no closed form, or after 200 steps. Each step costs O(d^3). REQUIRES: f
// is convex.
std::optional<Minimum> newton_minimum(MeanFunction& f);

// Finds the minimum by the accelerated gradient method with step 1 / L, restarted if the gradient points
// along the last step (O'Donoghue and Candes, arXiv 1204.3982). Stops once ||g||^2 / (2 mu), which bounds
// f(x) - f*, is below 1e-16 |f|. Nullopt after 200,000 steps. REQUIRES: f is L-smooth and mu-strongly convex,
// and mu > 0.
std::optional<Minimum> accelerated_minimum(MeanFunction& f, double L, double mu);

}  // namespace gradwire
