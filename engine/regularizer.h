// R(x) of the regularised problems: none, (lambda/2) ||x||^2, or the nonconvex lambda sum_j x_j^2 / (1 +
// x_j^2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/upper_triangle.h"

namespace gradwire {

enum class Regularizer : std::uint8_t { kNone, kL2, kNonconvex };

// Largest absolute eigenvalue of R's Hessian: R'' of the nonconvex one lies in [-lambda/2, 2 lambda].
inline double regularizer_smoothness(Regularizer regularizer, double lambda) {
  switch (regularizer) {
    case Regularizer::kNone: return 0;
    case Regularizer::kL2: return lambda;
    case Regularizer::kNonconvex: return 2 * lambda;
  }
  return 0;
}

// Returns R(x), added up in double, and adds its gradient to `gradient`.
template <class Real>
double add_regularizer(Regularizer regularizer, double lambda, std::span<const Real> x,
                       std::span<Real> gradient) {
  if (regularizer == Regularizer::kNone || lambda == 0) return 0;
  // One running sum per lane: with a single sum, each addition would wait for the one before.
  constexpr std::size_t kLanes = 8;
  double sums[kLanes] = {};
  const auto scale = static_cast<Real>(lambda);
  const auto add_term = [&](std::size_t j, std::size_t lane) {
    const Real square = x[j] * x[j];
    if (regularizer == Regularizer::kL2) {
      gradient[j] += scale * x[j];
      sums[lane] += static_cast<double>(square) / 2;
    } else {
      const Real bottom = 1 + square;
      gradient[j] += 2 * scale * x[j] / (bottom * bottom);
      sums[lane] += static_cast<double>(square / bottom);
    }
  };
  std::size_t j = 0;
  for (; j + kLanes <= x.size(); j += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) add_term(j + lane, lane);
  }
  for (; j < x.size(); ++j) add_term(j, 0);
  double sum = 0;
  for (const double part : sums) sum += part;
  return lambda * sum;
}

// Adds the Hessian of R at x, a diagonal, to an upper triangle of shape (d (d + 1) / 2).
template <class Real>
void add_regularizer_hessian(Regularizer regularizer, double lambda, std::span<const Real> x,
                             std::span<Real> upper) {
  if (regularizer == Regularizer::kNone || lambda == 0) return;
  const auto scale = static_cast<Real>(lambda);
  const std::size_t d = x.size();
  for (std::size_t j = 0; j < d; ++j) {
    Real& diagonal = upper[upper_row(j, d) + j];
    if (regularizer == Regularizer::kL2) {
      diagonal += scale;
    } else {
      const Real square = x[j] * x[j], inverse = 1 / (1 + square);
      // 2 lambda (1 - 3 x^2) / (1 + x^2)^3, without a cube that overflows.
      diagonal += 2 * scale * (4 * inverse - 3) * inverse * inverse;
    }
  }
}

}  // namespace gradwire
