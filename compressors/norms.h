#pragma once

#include <cmath>

#include "compressors/payload.h"

namespace gradwire {

// The number value * 2^exponent. In this form the norm of finite numbers never overflows, and it is 0 only if
// all numbers are 0.
struct ScaledNorm {
  double value = 0;
  int exponent = 0;
  double over(double s) const { return std::ldexp(value / s, exponent); }  // may be inf
};

template <class Real>
bool all_finite(View<Real> v);

template <class Real>
Real largest_magnitude(View<Real> v);

// Returns ||v||_p for 1 <= p <= inf, summed in double in a fixed order of lanes.
template <class Real>
ScaledNorm norm(View<Real> v, double p);

}  // namespace gradwire
