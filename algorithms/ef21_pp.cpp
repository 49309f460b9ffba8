#include "algorithms/ef21_pp.h"

namespace gradwire {
namespace {

// Returns the minimum over ρ of (a + b/ρ) / (c − e ρ), with a = β p + 1 − p, b = e = 1 − p, c = θ p. The
// derivative vanishes if a e ρ² + 2 b e ρ − b c = 0.
double best_over_rho(double a, double b, double c) {
  if (c <= 0) return std::numeric_limits<double>::infinity();
  if (b == 0) return a / c;
  const double rho = (-b * b + std::sqrt(b * b * b * b + a * b * b * c)) / (a * b);
  return (a + b / rho) / (c - b * rho);
}

}  // namespace

double ef21_pp_ratio(double alpha, double p) {
  const double rest = 1 - alpha;
  if (rest == 0) return best_over_rho(1 - p, 1 - p, p);
  const auto value = [&](double s) {
    const double theta = 1 - (1 + s) * rest, beta = (1 + 1 / s) * rest;
    return best_over_rho(beta * p + 1 - p, 1 - p, theta * p);
  };
  double low = 0, high = alpha / rest;  // θ > 0 in between
  constexpr double kGolden = 0.6180339887498949;
  constexpr int kSteps = 200;
  for (int k = 0; k < kSteps; ++k) {
    const double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
    if (value(a) <= value(b)) {
      high = b;
    } else {
      low = a;
    }
  }
  return value((low + high) / 2);
}

}  // namespace gradwire
