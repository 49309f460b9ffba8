// Random numbers for data and initial weights: the same seed gives the same bits on every machine. The
// generator is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). log and exp are our own, because std::log
// differs between C libraries. Clients that split one file on different machines must agree on every row.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/fnv1a.h"

namespace gradwire {

// Returns the natural logarithm of a positive normal number within 2 ulp, by basic operations only.
inline double portable_log(double x) {
  // x = mantissa 2^exponent, mantissa in [0.5, 1), as from frexp(), but without a call in the loop.
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int32_t>(bits >> 52) - 1022;
  double mantissa = std::bit_cast<double>((bits & 0x000fffffffffffff) | 0x3fe0000000000000);
  const bool is_low = mantissa < 0.70710678118654752;
  mantissa = is_low ? mantissa * 2 : mantissa;
  exponent -= is_low ? 1 : 0;
  // log m = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...), |s| <= 0.172: eleven terms reach 2^-55.
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double series = 0;
  for (int term = 21; term >= 3; term -= 2) series = (series + 1.0 / term) * square;
  return exponent * 0.69314718055994531 + 2 * (s + s * series);
}

// Returns e^x within 2 ulp for x in [-700, 700], and 0 below, by basic operations only.
inline double portable_exp(double x) {
  if (x < -700) return 0;
  const double power = std::floor(x * 1.4426950408889634 + 0.5);
  // ln 2 as a sum of two numbers. The first has 33 bits, so its product with the power is exact.
  const double rest = (x - power * 0.693147180369123816490) - power * 1.90821492927058770002e-10;
  double series = 1;  // |rest| <= 0.347: fourteen terms reach 2^-55
  for (int term = 14; term >= 1; --term) series = 1 + series * rest / term;
  return std::ldexp(series, static_cast<int>(power));
}

// A stream of random numbers for (seed, purpose, index). No stream changes the numbers of another.
class Random {
 public:
  explicit Random(std::uint64_t seed, std::string_view domain, std::uint64_t index = 0) {
    Fnv1a name;
    name.add(domain);
    state_ = mix(mix(mix(seed + kStep) ^ name.value()) + index * kStep);
  }

  std::uint64_t next() { return mix(state_ += kStep); }

  // Returns a multiple of 2^-53 in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // Returns a standard normal number, by Marsaglia's polar algorithm.
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    double a = 0, b = 0, square = 0;
    draw_pair(a, b, square);
    const double scale = scale_of_pair(square);
    spare_ = b * scale;
    has_spare_ = true;
    return a * scale;
  }

  // Writes the next out.size() results of normal(), bit for bit. This is faster than calls of normal(),
  // because the numbers do not depend on each other.
  void normals(std::span<double> out) {
    std::size_t done = 0;
    if (has_spare_ && !out.empty()) out[done++] = normal();
    constexpr std::size_t kPairs = 64;
    double a[kPairs], b[kPairs], square[kPairs];
    while (out.size() - done >= 2) {
      const std::size_t pairs = std::min(kPairs, (out.size() - done) / 2);
      for (std::size_t p = 0; p < pairs; ++p) draw_pair(a[p], b[p], square[p]);
      for (std::size_t p = 0; p < pairs; ++p, done += 2) {
        const double scale = scale_of_pair(square[p]);
        out[done] = a[p] * scale;
        out[done + 1] = b[p] * scale;
      }
    }
    if (done < out.size()) out[done] = normal();
  }

  // Returns a uniform number in [0, n), without bias. REQUIRES: n > 0.
  std::uint64_t below(std::uint64_t n) {
    if (n == 0) throw std::logic_error("Random::below(0)");
    const std::uint64_t reject = (0 - n) % n;  // 2^64 mod n
    std::uint64_t draw = next();
    while (draw < reject) draw = next();
    return draw % n;
  }

  template <class T>
  void shuffle(std::span<T> items) {
    for (std::size_t left = items.size(); left > 1; --left) std::swap(items[left - 1], items[below(left)]);
  }

 private:
  // Draws a point of the unit disc, and its squared distance from the centre.
  void draw_pair(double& a, double& b, double& square) {
    do {
      a = 2 * uniform() - 1;
      b = 2 * uniform() - 1;
      square = a * a + b * b;
    } while (square >= 1 || square == 0);
  }
  static double scale_of_pair(double square) { return std::sqrt(-2 * portable_log(square) / square); }

  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::uint64_t state_ = 0;
  bool has_spare_ = false;
  double spare_ = 0;
};

}  // namespace gradwire
