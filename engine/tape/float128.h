// IEEE 754 binary128 for the tapes, with 113 bits of mantissa. It exists if the compiler and the C library
// have it (GRADWIRE_HAS_FLOAT128): g++ with glibc on x86-64 and ARM. Processors have no instructions for it,
// so an operation takes tens of nanoseconds.
#pragma once

#include <cmath>
#include <type_traits>

#include "engine/tape/wrapped.h"

#if defined(__HAVE_FLOAT128) && __HAVE_FLOAT128 && defined(__USE_GNU)
#define GRADWIRE_HAS_FLOAT128 1

namespace gradwire {

class Float128 {
 public:
  using Compute = _Float128;  // the C library's name for the compiler's type
  static constexpr NumberType kNumberType = NumberType::kFp128;

  Float128() = default;
  Float128(Compute x) : value_(x) {}
  template <class Number>
  requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, Compute>) Float128(Number x)
      : value_(static_cast<Compute>(x)) {}
  explicit operator Compute() const { return value_; }
  // On some systems Compute is long double. A second operator for double works on all systems.
  explicit operator double() const { return static_cast<double>(value_); }

 private:
  Compute value_;
};

#define GRADWIRE_FLOAT128_FUNCTION(name, function) \
  inline Float128 name(const Float128& x) { return ::function(static_cast<Float128::Compute>(x)); }
GRADWIRE_FLOAT128_FUNCTION(abs, fabsf128)
GRADWIRE_FLOAT128_FUNCTION(exp, expf128)
GRADWIRE_FLOAT128_FUNCTION(log, logf128)
GRADWIRE_FLOAT128_FUNCTION(tanh, tanhf128)
GRADWIRE_FLOAT128_FUNCTION(sin, sinf128)
GRADWIRE_FLOAT128_FUNCTION(cos, cosf128)
GRADWIRE_FLOAT128_FUNCTION(sqrt, sqrtf128)
#undef GRADWIRE_FLOAT128_FUNCTION
inline Float128 pow(const Float128& a, const Float128& b) {
  return ::powf128(static_cast<Float128::Compute>(a), static_cast<Float128::Compute>(b));
}

}  // namespace gradwire

#else
#define GRADWIRE_HAS_FLOAT128 0
#endif
