// exp and tanh of whole vectors, with errors of a few ulp (tests/engine/nn/kernel_math_test.cpp has the
// figures).
#pragma once

#include "engine/kernels/vec.h"

namespace gradwire::GRADWIRE_ISA {

// The parts of e^x = scale (1 + rest), where scale is a power of two and |rest| <= 0.42. So exp and exp - 1
// both have a small relative error. Arguments are clamped to the range in which scale is a normal number. nan
// gives nan.
template <class V>
struct ExpParts {
  V scale, rest;
};

// The number of terms of the series of e^r - 1, |r| <= 0.347. The first term left out is at most
// 0.347^8 / 8! = 5e-9 for float and 0.347^14 / 14! = 4e-18 for double.
template <class T>
inline constexpr int kExpTerms = sizeof(T) == 4 ? 7 : 13;

template <class T>
inline constexpr T kExpLow = sizeof(T) == 4 ? T(-87) : T(-708);

template <class T>
struct ExpSeries {  // c[k] = 1 / (k + 1)!
  T c[kExpTerms<T>] = {};
  constexpr ExpSeries() {
    double factorial = 1;
    for (int k = 0; k < kExpTerms<T>; ++k) {
      factorial *= k + 1;
      c[k] = static_cast<T>(1 / factorial);
    }
  }
};
template <class T>
inline constexpr ExpSeries<T> kExpSeries = {};

template <class T, int N>
GRADWIRE_KERNEL ExpParts<Vec<T, N>> exp_parts(Vec<T, N> x) {
  using V = Vec<T, N>;
  using I = IntVec<T, N>;
  constexpr bool kFloat = sizeof(T) == 4;
  constexpr T kHigh = kFloat ? T(88) : T(709);
  constexpr T kRounder = kFloat ? T(0x1.8p23) : T(0x1.8p52);  // x + kRounder - kRounder rounds to an integer
  constexpr T kLn2High = kFloat ? T(0.693359375) : T(0.693147180369123816490);
  constexpr T kLn2Low = kFloat ? T(-2.12194440054690583e-4) : T(1.90821492927058770002e-10);
  constexpr int kMantissaBits = kFloat ? 23 : 52;
  x = smaller(splat<V>(kHigh), larger(splat<V>(kExpLow<T>), x));
  const V shifted = fma(T(1.4426950408889634), x, splat<V>(kRounder));
  const V power = shifted - kRounder;
  const V r = fma(-kLn2Low, power, fma(-kLn2High, power, x));
  const I one = __builtin_bit_cast(I, splat<V>(T(1)));
  const I bits = (__builtin_bit_cast(I, shifted) << kMantissaBits) + one;
  V series = splat<V>(kExpSeries<T>.c[kExpTerms<T> - 1]);
#pragma GCC unroll 16
  for (int k = kExpTerms<T> - 2; k >= 0; --k) series = fma(series, r, splat<V>(kExpSeries<T>.c[k]));
  return {__builtin_bit_cast(V, bits), series * r};
}

template <class T, int N>
GRADWIRE_KERNEL Vec<T, N> exp(Vec<T, N> x) {
  using V = Vec<T, N>;
  const auto parts = exp_parts<T, N>(x);
  const V e = fma(parts.scale, parts.rest, parts.scale);
  return x < kExpLow<T> ? V{} : e;  // 0, because computing with the smallest numbers is slow
}

// Computes tanh |x| = -m / (2 + m) with m = e^(-2|x|) - 1, which loses no digits near 0, and sets the sign.
template <class T, int N>
GRADWIRE_KERNEL Vec<T, N> tanh(Vec<T, N> x) {
  using V = Vec<T, N>;
  const V size = x < 0 ? -x : x;
  const auto parts = exp_parts<T, N>(size * T(-2));
  const V m = fma(parts.scale, parts.rest, parts.scale - T(1));
  const V y = -m / (m + T(2));
  return x < 0 ? -y : y;
}

// Computes 1 / (1 + e^-x) from e = e^-|x|, which does not overflow.
template <class T, int N>
GRADWIRE_KERNEL Vec<T, N> sigmoid(Vec<T, N> x) {
  using V = Vec<T, N>;
  const V e = exp<T, N>(x < 0 ? x : -x);
  const V large = T(1) / (e + T(1));
  return x < 0 ? e * large : large;
}

}  // namespace gradwire::GRADWIRE_ISA
