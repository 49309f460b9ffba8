// exp, tanh and the logistic loss, computed from basic operations. Loops that apply them to arrays are
// vectorized without -ffast-math. The results do not depend on the C library. Errors are a few ulp; the tests
// give the bounds.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace gradwire {

// Constants of float and double for the functions below.
template <class Real>
struct ElementaryTraits;

template <>
struct ElementaryTraits<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kOneBits = 0x3f800000;
  static constexpr float kRounder = 0x1.8p23f;     // x + kRounder - kRounder rounds x to an integer
  static constexpr float kExpLow = -87.0f;         // below, exp is 0
  static constexpr float kExpHigh = 88.0f;         // above, exp is exp(88)
  static constexpr float kLn2High = 0.693359375f;  // few bits, so that a multiple of it is exact
  static constexpr float kLn2Low = -2.12194440054690583e-4f;
  static constexpr int kExpDegree = 7;  // 0.347^8 / 8! = 5e-9
  static constexpr int kLogTerms = 5;   // 0.0295^5 / 11 = 2e-9
};

template <>
struct ElementaryTraits<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kOneBits = 0x3ff0000000000000;
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kExpLow = -708.0;
  static constexpr double kExpHigh = 709.0;
  static constexpr double kLn2High = 0.693147180369123816490;
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr int kExpDegree = 13;  // 0.347^14 / 14! = 4e-18
  static constexpr int kLogTerms = 11;   // 0.0295^11 / 23 = 6e-19
};

// The coefficients of (e^r - 1) / r: 1, 1/2, 1/6, 1/24, ...
template <class Real>
constexpr auto kExpCoefficients = [] {
  std::array<Real, ElementaryTraits<Real>::kExpDegree> coefficients{};
  double factorial = 1;
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    factorial *= static_cast<double>(k + 1);
    coefficients[k] = static_cast<Real>(1 / factorial);
  }
  return coefficients;
}();

// The parts of e^x = scale * (1 + rest): scale is a power of two, and |rest| <= 0.42. Both e^x and e^x - 1
// can be computed from them with a small relative error. Arguments above kExpHigh count as kExpHigh. Below
// kExpLow scale is 0. NaN gives rest = NaN.
template <class Real>
struct ExpParts {
  Real scale;
  Real rest;
};

template <class Real>
[[gnu::always_inline]] inline ExpParts<Real> exp_parts(Real x) {
  using Traits = ElementaryTraits<Real>;
  using Bits = typename Traits::Bits;
  const bool underflow = x < Traits::kExpLow;
  x = underflow ? Traits::kExpLow : x;
  x = x > Traits::kExpHigh ? Traits::kExpHigh : x;
  const Real shifted =
      x * Real(1.4426950408889634) + Traits::kRounder;  // the power of two, in the lowest bits
  const Real power = shifted - Traits::kRounder;
  const Real r = (x - power * Traits::kLn2High) - power * Traits::kLn2Low;
  const Bits bits = (std::bit_cast<Bits>(shifted) << Traits::kMantissaBits) + Traits::kOneBits;
  Real series = kExpCoefficients<Real>[Traits::kExpDegree - 1];
#pragma GCC unroll 16
  for (int k = Traits::kExpDegree - 2; k >= 0; --k) series = kExpCoefficients<Real>[k] + series * r;
  return {underflow ? Real(0) : std::bit_cast<Real>(bits), series * r};
}

// Returns e^x: 0 below kExpLow, e^kExpHigh above kExpHigh, so never infinity. NaN stays NaN.
template <class Real>
[[gnu::always_inline]] inline Real fast_exp(Real x) {
  const ExpParts<Real> parts = exp_parts(x);
  return parts.scale + parts.scale * parts.rest;
}

// Returns tanh x = -m / (2 + m) with m = e^(-2|x|) - 1, without cancellation near 0.
template <class Real>
[[gnu::always_inline]] inline Real fast_tanh(Real x) {
  const Real size = x < 0 ? -x : x;
  const ExpParts<Real> parts = exp_parts(-2 * size);
  const Real m = parts.scale * parts.rest + (parts.scale - 1);
  const Real y = -m / (2 + m);
  return x < 0 ? -y : y;
}

// Returns log(1 + e) for e in [0, 1], by log u = 2 atanh((u - 1) / (u + 1)). u is 1 + e, or (1 + e) / 2 if
// that is nearer 1.
template <class Real>
[[gnu::always_inline]] inline Real log1p_unit(Real e) {
  using Traits = ElementaryTraits<Real>;
  const bool near_two = e > Real(0.41421356237309505);
  const Real top = near_two ? e - 1 : e;
  const Real bottom = near_two ? e + 3 : e + 2;
  const Real base = near_two ? Real(0.69314718055994531) : Real(0);
  const Real s = top / bottom;
  const Real square = s * s;
  Real series = 0;
#pragma GCC unroll 16
  for (int k = Traits::kLogTerms; k >= 1; --k) series = (series + Real(1) / Real(2 * k + 1)) * square;
  return base + 2 * (s + s * series);
}

}  // namespace gradwire
