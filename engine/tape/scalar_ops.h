// Operations of one and two scalars. Each computes its derivatives next to its value, for every tape of
// engine/tape/var.h. To add one, write one function here and one line in tests/engine/tape/tape_operations.h.
// A user function
//   template <class V> V f(V a, V b) { V c = a + b; return sqr(c - a * b) / 2; }
// runs on the tape that made its arguments. k is a plain number: any arithmetic type, or a number per lane.
//
// Derivatives are those of the formula, and infinite where the formula is. The few functions with a kink say
// which derivative they use there. A nan argument gives nan.
#pragma once

#include <cmath>
#include <concepts>

#include "engine/tape/var.h"
#include "engine/tape/wider.h"

namespace gradwire {

// Returns condition ? a : b. engine/tape/lanes.h has the version for lanes.
template <std::floating_point Real>
GRADWIRE_INLINE Real select(bool condition, Real a, Real b) {
  return condition ? a : b;
}

template <class T>
GRADWIRE_INLINE Var<T> operator+(const Var<T>& a, const Var<T>& b) {
  return result(a.value() + b.value(), a, 1, b, 1);
}
template <class T>
GRADWIRE_INLINE Var<T> operator-(const Var<T>& a, const Var<T>& b) {
  return result(a.value() - b.value(), a, 1, b, -1);
}
template <class T>
GRADWIRE_INLINE Var<T> operator*(const Var<T>& a, const Var<T>& b) {
  return result(a.value() * b.value(), a, b.value(), b, a.value());
}
template <class T>
GRADWIRE_INLINE Var<T> operator/(const Var<T>& a, const Var<T>& b) {
  const ValueOf<T> quotient = a.value() / b.value(), inverse = 1 / b.value();
  return result(quotient, a, inverse, b, -quotient * inverse);
}

// A Var plus a number has the gradient of the Var: both share one place on the tape.
template <class T>
GRADWIRE_INLINE Var<T> operator+(const Var<T>& a, const ValueOf<T>& k) {
  return {&a.tape(), a.value() + k, a.place()};
}
template <class T>
GRADWIRE_INLINE Var<T> operator+(const ValueOf<T>& k, const Var<T>& a) {
  return {&a.tape(), k + a.value(), a.place()};
}
template <class T>
GRADWIRE_INLINE Var<T> operator-(const Var<T>& a, const ValueOf<T>& k) {
  return {&a.tape(), a.value() - k, a.place()};
}
template <class T>
GRADWIRE_INLINE Var<T> operator-(const ValueOf<T>& k, const Var<T>& a) {
  return result(k - a.value(), a, -1);
}
template <class T>
GRADWIRE_INLINE Var<T> operator*(const Var<T>& a, const ValueOf<T>& k) {
  return result(a.value() * k, a, k);
}
template <class T>
GRADWIRE_INLINE Var<T> operator*(const ValueOf<T>& k, const Var<T>& a) {
  return result(k * a.value(), a, k);
}
template <class T>
GRADWIRE_INLINE Var<T> operator/(const Var<T>& a, const ValueOf<T>& k) {
  return result(a.value() / k, a, 1 / k);
}
template <class T>
GRADWIRE_INLINE Var<T> operator/(const ValueOf<T>& k, const Var<T>& a) {
  const ValueOf<T> quotient = k / a.value(), inverse = 1 / a.value();
  return result(quotient, a, -quotient * inverse);
}
template <class T>
GRADWIRE_INLINE Var<T> operator-(const Var<T>& a) {
  return result(-a.value(), a, -1);
}
template <class T>
GRADWIRE_INLINE Var<T> operator+(const Var<T>& a) {
  return a;
}

template <class T>
GRADWIRE_INLINE Var<T>& operator+=(Var<T>& a, const Var<T>& b) {
  return a = a + b;
}
template <class T>
GRADWIRE_INLINE Var<T>& operator-=(Var<T>& a, const Var<T>& b) {
  return a = a - b;
}
template <class T>
GRADWIRE_INLINE Var<T>& operator*=(Var<T>& a, const Var<T>& b) {
  return a = a * b;
}
template <class T>
GRADWIRE_INLINE Var<T>& operator/=(Var<T>& a, const Var<T>& b) {
  return a = a / b;
}
template <class T>
GRADWIRE_INLINE Var<T>& operator+=(Var<T>& a, const ValueOf<T>& k) {
  return a = a + k;
}
template <class T>
GRADWIRE_INLINE Var<T>& operator-=(Var<T>& a, const ValueOf<T>& k) {
  return a = a - k;
}
template <class T>
GRADWIRE_INLINE Var<T>& operator*=(Var<T>& a, const ValueOf<T>& k) {
  return a = a * k;
}
template <class T>
GRADWIRE_INLINE Var<T>& operator/=(Var<T>& a, const ValueOf<T>& k) {
  return a = a / k;
}

template <class T>
GRADWIRE_INLINE Var<T> mul_by_constant(const Var<T>& a, const ValueOf<T>& k) {
  return a * k;
}

// Computes max(a, 0); its derivative is 0 at 0.
template <class T>
GRADWIRE_INLINE Var<T> relu(const Var<T>& a) {
  const ValueOf<T> zero(0), one(1);
  const auto off = a.value() <= zero;
  return result(select(off, zero, a.value()), a, select(off, zero, one));
}

// Computes |a|; its derivative is 0 at 0.
template <class T>
GRADWIRE_INLINE Var<T> abs(const Var<T>& a) {
  using std::abs;
  const ValueOf<T> zero(0), one(1);
  return result(abs(a.value()), a, select(a.value() == zero, zero, select(a.value() < zero, -one, one)));
}

template <class T>
GRADWIRE_INLINE Var<T> tanh(const Var<T>& a) {
  using std::tanh;
  const ValueOf<T> t = tanh(a.value());
  return result(t, a, 1 - t * t);
}

// Computes 1 / (1 + e^-a) without overflow for any a.
template <class T>
GRADWIRE_INLINE Var<T> sigmoid(const Var<T>& a) {
  using std::abs, std::exp;
  const ValueOf<T> e = exp(-abs(a.value()));
  const ValueOf<T> large = 1 / (1 + e), small = e * large;  // values at |a| and -|a|
  return result(select(a.value() < ValueOf<T>(0), small, large), a, small * large);
}

template <class T>
GRADWIRE_INLINE Var<T> exp(const Var<T>& a) {
  using std::exp;
  const ValueOf<T> e = exp(a.value());
  return result(e, a, e);
}

template <class T>
GRADWIRE_INLINE Var<T> log(const Var<T>& a) {
  using std::log;
  return result(log(a.value()), a, 1 / a.value());
}

template <class T>
GRADWIRE_INLINE Var<T> negative_log(const Var<T>& a) {
  using std::log;
  return result(-log(a.value()), a, -1 / a.value());
}

template <class T>
GRADWIRE_INLINE Var<T> sin(const Var<T>& a) {
  using std::cos, std::sin;
  return result(sin(a.value()), a, cos(a.value()));
}

template <class T>
GRADWIRE_INLINE Var<T> cos(const Var<T>& a) {
  using std::cos, std::sin;
  return result(cos(a.value()), a, -sin(a.value()));
}

template <class T>
GRADWIRE_INLINE Var<T> inv(const Var<T>& a) {
  const ValueOf<T> inverse = 1 / a.value();
  return result(inverse, a, -inverse * inverse);
}

template <class T>
GRADWIRE_INLINE Var<T> sqr(const Var<T>& a) {
  return result(a.value() * a.value(), a, 2 * a.value());
}

template <class T>
GRADWIRE_INLINE Var<T> pow3(const Var<T>& a) {
  const ValueOf<T> square = a.value() * a.value();
  return result(square * a.value(), a, 3 * square);
}

template <class T>
GRADWIRE_INLINE Var<T> sqrt(const Var<T>& a) {
  using std::sqrt;
  const ValueOf<T> root = sqrt(a.value());
  return result(root, a, ValueOf<T>(0.5) / root);
}

// Computes 1 / sqrt(a).
template <class T>
GRADWIRE_INLINE Var<T> inv_sqrt(const Var<T>& a) {
  using std::sqrt;
  const ValueOf<T> inverse = 1 / sqrt(a.value());
  return result(inverse, a, ValueOf<T>(-0.5) * inverse / a.value());
}

// Computes a^k. For k = 0 it is the constant 1.
template <class T>
GRADWIRE_INLINE Var<T> pow(const Var<T>& a, const ValueOf<T>& k) {
  using std::pow;
  const ValueOf<T> zero(0);
  return result(pow(a.value(), k), a, select(k == zero, zero, k * pow(a.value(), k - 1)));
}
template <class T>
GRADWIRE_INLINE Var<T> pow(const ValueOf<T>& k, const Var<T>& b) {
  using std::log, std::pow;
  const ValueOf<T> power = pow(k, b.value()), zero(0);
  return result(power, b, select(power == zero, zero, power * log(k)));
}
// Computes a^b. The derivative by b is nan for a < 0.
template <class T>
GRADWIRE_INLINE Var<T> pow(const Var<T>& a, const Var<T>& b) {
  using std::log, std::pow;
  const ValueOf<T> power = pow(a.value(), b.value()), zero(0);
  const ValueOf<T> da = select(b.value() == zero, zero, b.value() * pow(a.value(), b.value() - 1));
  return result(power, a, da, b, select(power == zero, zero, power * log(a.value())));
}

// max and min give the whole gradient to the first argument if both are equal. A number counts as an
// argument.
template <class T>
GRADWIRE_INLINE Var<T> max(const Var<T>& a, const Var<T>& b) {
  const ValueOf<T> zero(0), one(1);
  const auto second = (b.value() > a.value()) || (b.value() != b.value());
  return result(select(second, b.value(), a.value()), a, select(second, zero, one), b,
                select(second, one, zero));
}
template <class T>
GRADWIRE_INLINE Var<T> max(const Var<T>& a, const ValueOf<T>& k) {
  const auto number = (k > a.value()) || (k != k);
  return result(select(number, k, a.value()), a, select(number, ValueOf<T>(0), ValueOf<T>(1)));
}
template <class T>
GRADWIRE_INLINE Var<T> max(const ValueOf<T>& k, const Var<T>& a) {
  const auto var = (a.value() > k) || (a.value() != a.value());
  return result(select(var, a.value(), k), a, select(var, ValueOf<T>(1), ValueOf<T>(0)));
}
template <class T>
GRADWIRE_INLINE Var<T> min(const Var<T>& a, const Var<T>& b) {
  const ValueOf<T> zero(0), one(1);
  const auto second = (b.value() < a.value()) || (b.value() != b.value());
  return result(select(second, b.value(), a.value()), a, select(second, zero, one), b,
                select(second, one, zero));
}
template <class T>
GRADWIRE_INLINE Var<T> min(const Var<T>& a, const ValueOf<T>& k) {
  const auto number = (k < a.value()) || (k != k);
  return result(select(number, k, a.value()), a, select(number, ValueOf<T>(0), ValueOf<T>(1)));
}
template <class T>
GRADWIRE_INLINE Var<T> min(const ValueOf<T>& k, const Var<T>& a) {
  const auto var = (a.value() < k) || (a.value() != a.value());
  return result(select(var, a.value(), k), a, select(var, ValueOf<T>(1), ValueOf<T>(0)));
}

// Computes (a + b) / 2.
template <class T>
GRADWIRE_INLINE Var<T> mean(const Var<T>& a, const Var<T>& b) {
  const ValueOf<T> half(0.5);
  return result(static_cast<ValueOf<T>>((wide(a.value()) + wide(b.value())) * wide(half)), a, half, b, half);
}
// Computes -(a + b) / 2.
template <class T>
GRADWIRE_INLINE Var<T> negative_mean(const Var<T>& a, const Var<T>& b) {
  const ValueOf<T> half(0.5);
  return result(static_cast<ValueOf<T>>(-(wide(a.value()) + wide(b.value())) * wide(half)), a, -half, b,
                -half);
}
// Computes a^2 + b^2.
template <class T>
GRADWIRE_INLINE Var<T> add_squares(const Var<T>& a, const Var<T>& b) {
  const auto x = wide(a.value()), y = wide(b.value());
  return result(static_cast<ValueOf<T>>(x * x + y * y), a, 2 * a.value(), b, 2 * b.value());
}
// Computes (a^2 + b^2) / 2.
template <class T>
GRADWIRE_INLINE Var<T> mean_squares(const Var<T>& a, const Var<T>& b) {
  const auto x = wide(a.value()), y = wide(b.value());
  return result(static_cast<ValueOf<T>>((x * x + y * y) * wide(ValueOf<T>(0.5))), a, a.value(), b, b.value());
}

}  // namespace gradwire
