// Functions of one number, each with its derivative, and the plain arithmetic of arrays.
//
// To add an activation, write a struct here, an enumerator in include/gradwire/network.h and two entries in
// instance.cpp, and enlarge the two arrays in kernels.h. If kFromResult is true, the derivative is computed
// from the result y, so the function can work in place; otherwise it is computed from x.
#pragma once

#include "engine/kernels/vec_math.h"

namespace gradwire::GRADWIRE_ISA {

struct Tanh {
  static constexpr bool kFromResult = true;
  template <class T, int N>
  GRADWIRE_KERNEL static Vec<T, N> value(Vec<T, N> x) {
    return tanh<T, N>(x);
  }
  template <class T, int N>
  GRADWIRE_KERNEL static Vec<T, N> back(Vec<T, N> y, Vec<T, N> dy) {
    return dy * fma(-y, y, splat<Vec<T, N>>(T(1)));
  }
};

struct Relu {  // the derivative at 0 is 0
  static constexpr bool kFromResult = true;
  template <class T, int N>
  GRADWIRE_KERNEL static Vec<T, N> value(Vec<T, N> x) {
    return x < 0 ? Vec<T, N>{} : x;  // keeps nan
  }
  template <class T, int N>
  GRADWIRE_KERNEL static Vec<T, N> back(Vec<T, N> y, Vec<T, N> dy) {
    return y > 0 ? dy : Vec<T, N>{};
  }
};

struct Sigmoid {
  static constexpr bool kFromResult = true;
  template <class T, int N>
  GRADWIRE_KERNEL static Vec<T, N> value(Vec<T, N> x) {
    return sigmoid<T, N>(x);
  }
  template <class T, int N>
  GRADWIRE_KERNEL static Vec<T, N> back(Vec<T, N> y, Vec<T, N> dy) {
    return dy * fma(-y, y, y);
  }
};

// x / 2 (1 + tanh u), where u = sqrt(2 / pi) (x + 0.044715 x^3). Beyond +-64 the result is exactly x or 0, so
// x is clamped where it would overflow.
struct Gelu {
  static constexpr bool kFromResult = false;
  static constexpr double kRoot = 0.79788456080286535588, kCubic = 0.044715, kFar = 64;
  template <class T, int N>
  GRADWIRE_KERNEL static Vec<T, N> value(Vec<T, N> x) {
    x = x < T(-kFar) ? splat<Vec<T, N>>(T(-kFar)) : x;
    const auto u = x * T(kRoot) * (x * x * T(kCubic) + T(1));
    return x * sigmoid<T, N>(u + u);
  }
  template <class T, int N>
  GRADWIRE_KERNEL static Vec<T, N> back(Vec<T, N> x, Vec<T, N> dy) {
    x = x < T(-kFar) ? splat<Vec<T, N>>(T(-kFar)) : x;
    x = x > T(kFar) ? splat<Vec<T, N>>(T(kFar)) : x;
    const auto u = x * T(kRoot) * (x * x * T(kCubic) + T(1));
    const auto s = sigmoid<T, N>(u + u);
    const auto du = (x * x * T(3 * kCubic) + T(1)) * T(2 * kRoot);
    return dy * (s + x * du * s * (T(1) - s));
  }
};

// Calls f(first) for each register of numbers. The last one may exceed n, because arrays have slack.
template <class T, class F>
GRADWIRE_KERNEL void for_all(Index n, F&& f) {
  for (Index i = 0; i < n; i += kNative<T>) f(i);
}

template <class Function, class T>
void activation_forward(Index n, const T* x, T* y) {
  constexpr int N = kNative<T>;
  for_all<T>(n, [&](Index i) { store(y + i, Function::template value<T, N>(load<Vec<T, N>>(x + i))); });
}

template <class Function, class T>
void activation_backward(Index n, const T* from, const T* dy, bool add, T* dx) {
  constexpr int N = kNative<T>;
  using V = Vec<T, N>;
  const auto d = [&](Index i) { return Function::template back<T, N>(load<V>(from + i), load<V>(dy + i)); };
  if (add)
    for_all<T>(n, [&](Index i) { store(dx + i, load<V>(dx + i) + d(i)); });
  else
    for_all<T>(n, [&](Index i) { store(dx + i, d(i)); });
}

template <class T>
void add(Index n, const T* x, const T* y, T* z) {
  using V = Vec<T, kNative<T>>;
  for_all<T>(n, [&](Index i) { store(z + i, load<V>(x + i) + load<V>(y + i)); });
}

template <class T>
void copy(Index n, const T* x, T* y) {
  using V = Vec<T, kNative<T>>;
  for_all<T>(n, [&](Index i) { store(y + i, load<V>(x + i)); });
}

template <class T>
void multiply(Index n, const T* x, const T* y, bool add, T* z) {
  using V = Vec<T, kNative<T>>;
  if (add)
    for_all<T>(n, [&](Index i) { store(z + i, fma(load<V>(x + i), load<V>(y + i), load<V>(z + i))); });
  else
    for_all<T>(n, [&](Index i) { store(z + i, load<V>(x + i) * load<V>(y + i)); });
}

template <class T>
void axpy(Index n, T a, const T* x, T* y) {
  constexpr int N = kNative<T>;
  using V = Vec<T, N>;
  Index i = 0;
  for (; i + N <= n; i += N) store(y + i, fma(a, load<V>(x + i), load<V>(y + i)));
  for (; i < n; ++i) y[i] = scalar_fma(a, x[i], y[i]);
}

}  // namespace gradwire::GRADWIRE_ISA
