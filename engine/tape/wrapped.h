// Arithmetic and functions for number types that wrap another type and compute in it, so that every tape can
// use them. These types are Float16 and BFloat16 (base/half.h), which round each result to 16 bits, and
// Float128 (engine/tape/float128.h).
#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

#include "base/half.h"
#include "engine/tape/var.h"

namespace gradwire {

template <class T>
concept Wrapped = requires {
  typename T::Compute;
};

template <Wrapped T>
GRADWIRE_INLINE typename T::Compute compute(const T& x) {
  return static_cast<typename T::Compute>(x);
}

#define GRADWIRE_WRAPPED_OPERATOR(op)                                                         \
  template <Wrapped T>                                                                        \
  GRADWIRE_INLINE T operator op(const T& a, const T& b) {                                     \
    return T(compute(a) op compute(b));                                                       \
  }                                                                                           \
  template <Wrapped T, class Number>                                                          \
  requires std::is_arithmetic_v<Number> GRADWIRE_INLINE T operator op(const T& a, Number b) { \
    return a op T(b);                                                                         \
  }                                                                                           \
  template <Wrapped T, class Number>                                                          \
  requires std::is_arithmetic_v<Number> GRADWIRE_INLINE T operator op(Number a, const T& b) { \
    return T(a) op b;                                                                         \
  }                                                                                           \
  template <Wrapped T>                                                                        \
  GRADWIRE_INLINE T& operator op##=(T& a, const std::type_identity_t<T>& b) {                 \
    return a = a op b;                                                                        \
  }
GRADWIRE_WRAPPED_OPERATOR(+)
GRADWIRE_WRAPPED_OPERATOR(-)
GRADWIRE_WRAPPED_OPERATOR(*)
GRADWIRE_WRAPPED_OPERATOR(/)
#undef GRADWIRE_WRAPPED_OPERATOR

#define GRADWIRE_WRAPPED_COMPARISON(op)                      \
  template <Wrapped T>                                       \
  GRADWIRE_INLINE bool operator op(const T& a, const T& b) { \
    return compute(a) op compute(b);                         \
  }
GRADWIRE_WRAPPED_COMPARISON(==)
GRADWIRE_WRAPPED_COMPARISON(<)
GRADWIRE_WRAPPED_COMPARISON(>)
GRADWIRE_WRAPPED_COMPARISON(<=)
GRADWIRE_WRAPPED_COMPARISON(>=)
#undef GRADWIRE_WRAPPED_COMPARISON

template <Wrapped T>
GRADWIRE_INLINE T operator-(const T& a) {
  return T(-compute(a));
}
template <Wrapped T>
GRADWIRE_INLINE T select(bool condition, const T& a, const T& b) {
  return condition ? a : b;
}

// Functions of types that wrap float. They call the C++ library. engine/tape/float128.h has the functions of
// Float128.
template <Wrapped T>
requires std::floating_point<typename T::Compute> GRADWIRE_INLINE T abs(const T& x) {
  return T(std::abs(compute(x)));
}
#define GRADWIRE_WRAPPED_FUNCTION(name)                                                  \
  template <Wrapped T>                                                                   \
  requires std::floating_point<typename T::Compute> GRADWIRE_INLINE T name(const T& x) { \
    return T(std::name(compute(x)));                                                     \
  }
GRADWIRE_WRAPPED_FUNCTION(exp)
GRADWIRE_WRAPPED_FUNCTION(log)
GRADWIRE_WRAPPED_FUNCTION(tanh)
GRADWIRE_WRAPPED_FUNCTION(sin)
GRADWIRE_WRAPPED_FUNCTION(cos)
GRADWIRE_WRAPPED_FUNCTION(sqrt)
#undef GRADWIRE_WRAPPED_FUNCTION
template <Wrapped T>
requires std::floating_point<typename T::Compute> GRADWIRE_INLINE T pow(const T& a, const T& b) {
  return T(std::pow(compute(a), compute(b)));
}

}  // namespace gradwire
