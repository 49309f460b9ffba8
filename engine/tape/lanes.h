// N numbers in one value, for N points at once. EagerTape<Lanes<double, 8>> runs one graph for eight points,
// one per SIMD lane. Arithmetic and functions work lane by lane. Comparisons give a LaneMask, which select()
// takes.
//
// The code is plain loops over an array, which the compiler turns into vectors of the target's width. With
// vector extensions, it would work number by number if the processor lacks vectors of N numbers.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/elementary.h"
#include "engine/tape/var.h"

namespace gradwire {

// The result of a comparison. Bits is an integer as wide as the compared numbers; all its bits are 1 for
// true.
template <class Bits, std::size_t N>
struct LaneMask {
  std::array<Bits, N> lane;

  GRADWIRE_INLINE friend LaneMask operator||(const LaneMask& a, const LaneMask& b) {
    LaneMask either;
    for (std::size_t i = 0; i < N; ++i) either.lane[i] = a.lane[i] | b.lane[i];
    return either;
  }
};

#if defined(__AVX512F__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

// Real is float or double. N is a power of two from 4 to 16.
template <class Real, std::size_t N>
class alignas(N * sizeof(Real)) Lanes {
  static_assert(std::is_same_v<Real, float> || std::is_same_v<Real, double>);

 public:
  using Bits = std::conditional_t<sizeof(Real) == 8, std::int64_t, std::int32_t>;
  using Mask = LaneMask<Bits, N>;

  Lanes() = default;
  // Sets every lane to x.
  GRADWIRE_INLINE Lanes(Real x) {
    for (std::size_t i = 0; i < N; ++i) lane_[i] = x;
  }
  // Returns f(0), f(1), ...
  template <class F>
  GRADWIRE_INLINE static Lanes make(F f) {
    Lanes result;
    for (std::size_t i = 0; i < N; ++i) result.lane_[i] = f(i);
    return result;
  }

  static constexpr std::size_t size() { return N; }
  GRADWIRE_INLINE Real operator[](std::size_t i) const { return lane_[i]; }
  GRADWIRE_INLINE Real& operator[](std::size_t i) { return lane_[i]; }

  GRADWIRE_INLINE friend Lanes operator+(const Lanes& a, const Lanes& b) {
    return make([&](std::size_t i) { return a[i] + b[i]; });
  }
  GRADWIRE_INLINE friend Lanes operator-(const Lanes& a, const Lanes& b) {
    return make([&](std::size_t i) { return a[i] - b[i]; });
  }
  GRADWIRE_INLINE friend Lanes operator*(const Lanes& a, const Lanes& b) {
    return make([&](std::size_t i) { return a[i] * b[i]; });
  }
  GRADWIRE_INLINE friend Lanes operator/(const Lanes& a, const Lanes& b) {
    return make([&](std::size_t i) { return a[i] / b[i]; });
  }
  GRADWIRE_INLINE friend Lanes operator-(const Lanes& a) {
    return make([&](std::size_t i) { return -a[i]; });
  }
  GRADWIRE_INLINE Lanes& operator+=(const Lanes& b) { return *this = *this + b; }
  GRADWIRE_INLINE Lanes& operator-=(const Lanes& b) { return *this = *this - b; }
  GRADWIRE_INLINE Lanes& operator*=(const Lanes& b) { return *this = *this * b; }
  GRADWIRE_INLINE Lanes& operator/=(const Lanes& b) { return *this = *this / b; }

  GRADWIRE_INLINE friend Mask operator<(const Lanes& a, const Lanes& b) {
    return compare(a, b, [](const auto& x, const auto& y) { return x < y; });
  }
  GRADWIRE_INLINE friend Mask operator<=(const Lanes& a, const Lanes& b) {
    return compare(a, b, [](const auto& x, const auto& y) { return x <= y; });
  }
  GRADWIRE_INLINE friend Mask operator>(const Lanes& a, const Lanes& b) {
    return compare(a, b, [](const auto& x, const auto& y) { return x > y; });
  }
  GRADWIRE_INLINE friend Mask operator>=(const Lanes& a, const Lanes& b) {
    return compare(a, b, [](const auto& x, const auto& y) { return x >= y; });
  }
  GRADWIRE_INLINE friend Mask operator==(const Lanes& a, const Lanes& b) {
    return compare(a, b, [](const auto& x, const auto& y) { return x == y; });
  }
  GRADWIRE_INLINE friend Mask operator!=(const Lanes& a, const Lanes& b) {
    return compare(a, b, [](const auto& x, const auto& y) { return x != y; });
  }
  // Returns mask ? a : b. Works on integers, because without masked instructions a choice would become a
  // branch per lane.
  GRADWIRE_INLINE friend Lanes select(const Mask& mask, const Lanes& a, const Lanes& b) {
    return make([&](std::size_t i) {
      return std::bit_cast<Real>((mask.lane[i] & std::bit_cast<Bits>(a[i])) |
                                 (~mask.lane[i] & std::bit_cast<Bits>(b[i])));
    });
  }

  GRADWIRE_INLINE friend Lanes abs(const Lanes& a) {
    return make([&](std::size_t i) { return std::abs(a[i]); });
  }
  // Return a if both are equal or one of them is nan.
  GRADWIRE_INLINE friend Lanes max(const Lanes& a, const Lanes& b) { return select(b > a, b, a); }
  GRADWIRE_INLINE friend Lanes min(const Lanes& a, const Lanes& b) { return select(b < a, b, a); }

  // exp and tanh use engine/elementary.h, whose loops become vectors; errors are a few ulp. Far from 0, exp
  // uses e^x = (e^(x/2))^2, which overflows and underflows correctly.
  GRADWIRE_INLINE friend Lanes exp(const Lanes& a) {
    constexpr Real kFar = sizeof(Real) == 8 ? 700 : 80;
    const Mask far = abs(a) > Lanes(kFar);
    const Lanes x = select(far, a * Lanes(Real(0.5)), a);
    const Lanes power = make([&](std::size_t i) { return fast_exp(x[i]); });
    return select(far, power * power, power);
  }
  GRADWIRE_INLINE friend Lanes tanh(const Lanes& a) {
    return make([&](std::size_t i) { return fast_tanh(a[i]); });
  }
  GRADWIRE_INLINE friend Lanes sqrt(const Lanes& a) {
    return make([&](std::size_t i) { return std::sqrt(a[i]); });
  }
  GRADWIRE_INLINE friend Lanes log(const Lanes& a) {
    return make([&](std::size_t i) { return std::log(a[i]); });
  }
  GRADWIRE_INLINE friend Lanes sin(const Lanes& a) {
    return make([&](std::size_t i) { return std::sin(a[i]); });
  }
  GRADWIRE_INLINE friend Lanes cos(const Lanes& a) {
    return make([&](std::size_t i) { return std::cos(a[i]); });
  }
  GRADWIRE_INLINE friend Lanes pow(const Lanes& a, const Lanes& b) {
    return make([&](std::size_t i) { return std::pow(a[i], b[i]); });
  }

 private:
  // Compares vector by vector. For SSE2, the compiler does not vectorize a loop over lanes that each give a
  // bool.
  template <class F>
  GRADWIRE_INLINE static Mask compare(const Lanes& a, const Lanes& b, F f) {
    constexpr std::size_t kBytes = kVectorBytes < sizeof(Lanes) ? kVectorBytes : sizeof(Lanes);
    using Vector [[gnu::vector_size(kBytes)]] = Real;
    Mask mask;
    for (std::size_t i = 0; i < N; i += kBytes / sizeof(Real)) {
      Vector x, y;
      std::memcpy(&x, &a.lane_[i], kBytes);
      std::memcpy(&y, &b.lane_[i], kBytes);
      const auto truth = f(x, y);
      static_assert(sizeof(truth) == kBytes);
      std::memcpy(&mask.lane[i], &truth, kBytes);
    }
    return mask;
  }

  std::array<Real, N> lane_;
};

}  // namespace gradwire
