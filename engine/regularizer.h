// R(x) of regularised problems: none, (lambda/2) ||x||^2, or the nonconvex lambda sum_j x_j^2 / (1 + x_j^2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/lane_sum.h"
#include "engine/upper_triangle.h"
#include "gradwire/coordinates.h"

namespace gradwire {

enum class Regularizer : std::uint8_t { kNone, kL2, kNonconvex };

// Returns the largest absolute eigenvalue of R's Hessian. R'' of the nonconvex R is in [-lambda/2, 2 lambda].
inline double regularizer_smoothness(Regularizer regularizer, double lambda) {
  switch (regularizer) {
    case Regularizer::kNone: return 0;
    case Regularizer::kL2: return lambda;
    case Regularizer::kNonconvex: return 2 * lambda;
  }
  return 0;
}

// Returns the term of R at x_j, without lambda.
template <class Real>
double regularizer_term(Regularizer regularizer, Real x) {
  const Real square = x * x;
  if (regularizer == Regularizer::kL2) return static_cast<double>(square) / 2;
  return static_cast<double>(square / (1 + square));
}

// Returns the derivative of R by x_j; `scale` is lambda.
template <class Real>
Real regularizer_slope(Regularizer regularizer, Real scale, Real x) {
  if (regularizer == Regularizer::kL2) return scale * x;
  const Real bottom = 1 + x * x;
  return 2 * scale * x / (bottom * bottom);
}

// Returns R(x), summed in double, and adds its gradient to `gradient`.
template <class Real>
double add_regularizer(Regularizer regularizer, double lambda, std::span<const Real> x,
                       std::span<Real> gradient) {
  if (regularizer == Regularizer::kNone || lambda == 0) return 0;
  const auto scale = static_cast<Real>(lambda);
  const Real* point = x.data();
  Real* slopes = gradient.data();
  return lambda * lane_sum(x.size(), [=](std::size_t j) {
           slopes[j] += regularizer_slope(regularizer, scale, point[j]);
           return regularizer_term(regularizer, point[j]);
         });
}

// Returns R(x) alone, with the same bits as add_regularizer().
template <class Real>
double regularizer_value(Regularizer regularizer, double lambda, std::span<const Real> x) {
  if (regularizer == Regularizer::kNone || lambda == 0) return 0;
  const Real* point = x.data();
  return lambda * lane_sum(x.size(), [=](std::size_t j) { return regularizer_term(regularizer, point[j]); });
}

// Adds only the gradient of R at the wanted coordinates, with the same bits as add_regularizer().
template <class Real>
void add_regularizer_slopes(Regularizer regularizer, double lambda, std::span<const Real> x,
                            const Coordinates& wanted, std::span<Real> gradient) {
  if (regularizer == Regularizer::kNone || lambda == 0) return;
  const auto scale = static_cast<Real>(lambda);
  wanted.for_runs(x.size(), [&](std::size_t first, std::size_t end) {
    for (std::size_t j = first; j < end; ++j) gradient[j] += regularizer_slope(regularizer, scale, x[j]);
  });
}

// Returns the derivative of R at x in the direction v.
template <class Real>
double regularizer_derivative(Regularizer regularizer, double lambda, std::span<const Real> x,
                              std::span<const Real> v) {
  if (regularizer == Regularizer::kNone || lambda == 0) return 0;
  const auto scale = static_cast<Real>(lambda);
  return lane_sum(x.size(), [&](std::size_t j) {
    return static_cast<double>(regularizer_slope(regularizer, scale, x[j])) * static_cast<double>(v[j]);
  });
}

// Adds the Hessian of R at x, a diagonal matrix, to an upper triangle of shape (d (d + 1) / 2).
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
      // Equals 2 lambda (1 - 3 x^2) / (1 + x^2)^3, without a cube that overflows.
      diagonal += 2 * scale * (4 * inverse - 3) * inverse * inverse;
    }
  }
}

}  // namespace gradwire
