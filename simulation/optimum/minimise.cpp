#include "simulation/optimum/minimise.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/upper_triangle.h"

namespace gradwire {
namespace {

// Shares of |f| that count as zero.
constexpr double kNewtonAccuracy = 1e-17, kGradientAccuracy = 1e-16;
constexpr double kZeroShare = 1e-15;  // values below this share of f(0) are compared with that share
constexpr int kNewtonSteps = 200, kGradientSteps = 200'000;
constexpr double kShift = 1e-14;  // share of the mean diagonal that is added to a singular Hessian
constexpr double kSmallestStep = 1e-9;
constexpr double kLossRounding = 1e-15;

double inner_product(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}

// Computes U with U^T U = the symmetric matrix whose upper triangle is given, in place. Returns false if the
// matrix is not positive definite.
bool cholesky(std::span<double> upper, std::size_t d) {
  for (std::size_t k = 0; k < d; ++k) {
    double* const row = upper.data() + upper_row(k, d);
    if (!(row[k] > 0) || !std::isfinite(row[k])) return false;
    const double root = std::sqrt(row[k]);
    for (std::size_t j = k; j < d; ++j) row[j] /= root;
    for (std::size_t i = k + 1; i < d; ++i) {
      double* const below = upper.data() + upper_row(i, d);
      const double factor = row[i];
      if (factor == 0) continue;
      for (std::size_t j = i; j < d; ++j) below[j] -= factor * row[j];
    }
  }
  return true;
}

// Solves U^T U v = b; b becomes v.
void solve(std::span<const double> upper, std::span<double> b) {
  const std::size_t d = b.size();
  for (std::size_t k = 0; k < d; ++k) {
    const double* const row = upper.data() + upper_row(k, d);
    b[k] /= row[k];
    for (std::size_t j = k + 1; j < d; ++j) b[j] -= row[j] * b[k];
  }
  for (std::size_t k = d; k-- > 0;) {
    const double* const row = upper.data() + upper_row(k, d);
    for (std::size_t j = k + 1; j < d; ++j) b[k] -= row[j] * b[j];
    b[k] /= row[k];
  }
}

// Writes the factor of H + s I, with the smallest of a few s for which it exists.
bool factor(std::span<const double> hessian, std::size_t d, std::vector<double>& factor) {
  double trace = 0;
  for (std::size_t j = 0; j < d; ++j) trace += hessian[upper_row(j, d) + j];
  for (double shift = kShift * trace / static_cast<double>(d); shift <= trace; shift *= 100) {
    factor.assign(hessian.begin(), hessian.end());
    for (std::size_t j = 0; j < d; ++j) factor[upper_row(j, d) + j] += shift;
    if (cholesky(factor, d)) return true;
    if (shift == 0) break;
  }
  return false;
}

}  // namespace

std::optional<Minimum> newton_minimum(MeanFunction& f) {
  const std::size_t d = f.dim();
  std::vector<double> x(d), g(d), step(d), next(d), next_g(d), hessian(upper_size(d)), upper;
  double value = f.value_and_gradient(x, g);
  const double first = std::abs(value);
  for (int k = 0; k < kNewtonSteps; ++k) {
    if (!std::isfinite(value)) return std::nullopt;
    if (std::all_of(g.begin(), g.end(), [](double v) { return v == 0; })) return Minimum{value, x};
    if (!f.hessian(x, hessian) || !factor(hessian, d, upper)) return std::nullopt;
    step = g;
    solve(upper, step);
    const double decrement = inner_product(g, step);
    if (decrement / 2 <= kNewtonAccuracy * std::max(std::abs(value), kZeroShare * first)) {
      for (std::size_t j = 0; j < d; ++j) x[j] -= step[j];
      return Minimum{value - decrement / 2, x};
    }
    double next_value = 0;
    for (double t = 1;; t /= 2) {
      if (t < kSmallestStep)  // the rest is rounding
        return decrement / 2 <= kLossRounding * std::abs(value) ? std::optional(Minimum{value, x})
                                                                : std::nullopt;
      for (std::size_t j = 0; j < d; ++j) next[j] = x[j] - t * step[j];
      next_value = f.value_and_gradient(next, next_g);
      if (next_value <= value - 1e-4 * t * decrement + kLossRounding * std::abs(value)) break;
    }
    x.swap(next);
    g.swap(next_g);
    value = next_value;
  }
  return std::nullopt;
}

std::optional<Minimum> accelerated_minimum(MeanFunction& f, double L, double mu) {
  const std::size_t d = f.dim();
  std::vector<double> x(d), next(d), y(d), g(d);
  double first = 0, momentum = 1;
  for (int k = 0; k < kGradientSteps; ++k) {
    const double value = f.value_and_gradient(y, g);
    if (!std::isfinite(value)) return std::nullopt;
    if (k == 0) first = std::abs(value);
    if (inner_product(g, g) / (2 * mu) <= kGradientAccuracy * std::max(std::abs(value), kZeroShare * first))
      return Minimum{value, y};
    double along = 0;  // <g, next - x>
    for (std::size_t j = 0; j < d; ++j) {
      next[j] = y[j] - g[j] / L;
      along += g[j] * (next[j] - x[j]);
    }
    if (along > 0) momentum = 1;
    const double larger = (1 + std::sqrt(1 + 4 * momentum * momentum)) / 2;
    const double beta = (momentum - 1) / larger;
    for (std::size_t j = 0; j < d; ++j) y[j] = next[j] + beta * (next[j] - x[j]);
    momentum = larger;
    x.swap(next);
  }
  return std::nullopt;
}

}  // namespace gradwire
