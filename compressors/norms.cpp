#include "compressors/norms.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace gradwire {
namespace {

constexpr std::size_t kLanes = 32;  // hides the latency of an addition

// Returns the sum of term(v_j). The number of lanes is fixed, so the result is the same for every width of
// the vector registers.
template <class Real, class Term>
double sum_of(View<Real> v, Term term) {
  std::array<double, kLanes> lanes{};
  std::size_t j = 0;
  for (; j + kLanes <= v.size(); j += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += term(static_cast<double>(v[j + l]));
  for (std::size_t l = 0; j < v.size(); ++j, ++l) lanes[l] += term(static_cast<double>(v[j]));
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

// Returns true if all entries are finite. 0 times a number that is not finite is NaN, and so is then the sum.
template <class Real>
bool all_finite(View<Real> v) {
  std::array<Real, kLanes> lanes{};
  std::size_t j = 0;
  for (; j + kLanes <= v.size(); j += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += v[j + l] * Real(0);
  for (; j < v.size(); ++j) lanes[0] += v[j] * Real(0);
  Real sum = 0;
  for (const Real lane : lanes) sum += lane;
  return sum == 0;
}

template <class Real>
Real largest_magnitude(View<Real> v) {
  std::array<Real, kLanes> lanes{};
  std::size_t j = 0;
  for (; j + kLanes <= v.size(); j += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) {
      const Real x = std::abs(v[j + l]);
      lanes[l] = x > lanes[l] ? x : lanes[l];
    }
  for (; j < v.size(); ++j) lanes[0] = std::max(lanes[0], std::abs(v[j]));
  return *std::max_element(lanes.begin(), lanes.end());
}

template <class Real>
ScaledNorm norm(View<Real> v, double p) {
  // Squares and sums of floats fit into a double without scaling.
  if (sizeof(Real) == 4 && p == 1) return {sum_of(v, [](double x) { return std::abs(x); }), 0};
  if (sizeof(Real) == 4 && p == 2) return {std::sqrt(sum_of(v, [](double x) { return x * x; })), 0};
  const double largest = static_cast<double>(largest_magnitude(v));
  if (largest == 0 || std::isinf(p)) return {largest, 0};
  // 2^-exponent scales the largest entry to about 1, or to less if that entry is subnormal.
  const int exponent = std::clamp(std::ilogb(largest), -1000, 1020);
  const double scale = std::ldexp(1.0, -exponent);
  if (p == 1) return {sum_of(v, [=](double x) { return std::abs(x * scale); }), exponent};
  if (p == 2) {
    const double sum = sum_of(v, [=](double x) { return (x * scale) * (x * scale); });
    return {std::sqrt(sum), exponent};
  }
  const double sum = sum_of(v, [=](double x) { return std::pow(std::abs(x) / largest, p); });
  return {std::pow(sum, 1 / p) * (largest * scale), exponent};
}

template bool all_finite(View<float>);
template bool all_finite(View<double>);
template float largest_magnitude(View<float>);
template double largest_magnitude(View<double>);
template ScaledNorm norm(View<float>, double);
template ScaledNorm norm(View<double>, double);

}  // namespace gradwire
