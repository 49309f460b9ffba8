#include "compressors/dithering.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "compressors/norms.h"

namespace gradwire {
namespace {

// Returns the unit: norm / s, changed so that s units reach the largest entry and are finite in Real. Returns
// 0 only for the zero vector.
template <class Real>
Real unit_of(const ScaledNorm& norm, Real largest, std::uint32_t s) {
  constexpr Real kMost = std::numeric_limits<Real>::max();
  if (largest == 0) return 0;
  largest = std::min(largest, kMost);  // the remainder of an induced compressor may have overflowed
  const Real levels = static_cast<Real>(s);
  Real unit = static_cast<Real>(std::min(norm.over(s), static_cast<double>(kMost) / s));
  while (unit < kMost && unit * levels < largest) unit = std::nextafter(unit, kMost);
  while (std::isinf(unit * levels)) unit = std::nextafter(unit, Real(0));
  return unit;
}

// Rounds to multiples of the unit, at most `s` units. Zeros become +0.
template <class Real>
void round_to_multiples(std::span<Real> v, Real unit, std::uint32_t s, const RngKey& key) {
  const Real most = static_cast<Real>(s);
  with_uniforms<Real>(key, v.size(), [=](std::size_t lo, std::span<const Real> draws) {
    Real* const to = v.data() + lo;
    const Real* const u = draws.data();
    for (std::size_t j = 0; j < draws.size(); ++j) {
      const Real ratio = std::abs(to[j]) / unit, r = ratio < most ? ratio : most;
      const Real whole = static_cast<Real>(static_cast<std::int32_t>(r));
      const Real level = whole + (u[j] < r - whole ? Real(1) : Real(0));
      to[j] = std::copysign(level, to[j]) * unit + Real(0);  // -0 + 0 is +0
    }
  });
}

template <class Real>
Packed<Real> dither(std::span<Real> v, std::uint32_t s, double p, const RngKey& key) {
  const Real largest = std::min(largest_magnitude<Real>(v), std::numeric_limits<Real>::max());
  const Real unit = std::isinf(p) && s == 1 ? largest : unit_of(norm<Real>(v, p), largest, s);
  if (unit == 0) {
    std::fill(v.begin(), v.end(), Real(0));
  } else {
    round_to_multiples(v, unit, s, key);
  }
  if (s == 1) return {Packing::kTernary, 0, unit};
  return {Packing::kLevels, static_cast<std::uint16_t>(s), unit};
}

double root(std::size_t d, double p) { return std::pow(static_cast<double>(d), 1 / std::min(p, 2.0)); }

}  // namespace

CompressorConstants Qsgd::constants(std::size_t dim) const {
  const double d = static_cast<double>(dim), q = p.p >= 2 ? std::sqrt(d) : root(dim, p.p), levels = s;
  // The proof for p = 2 extends to other p by ||x||_p <= d^(1/min(p,2) - 1/2) ||x||_2.
  double omega = std::min(q * q / (levels * levels), q / levels);
  if (s == 1) omega = std::isinf(p.p) ? (q - 1) / 2 : q - 1;
  return CompressorConstants::of_unbiased(omega, d);
}

template <class Real>
Packed<Real> Qsgd::round(std::span<Real> v, const RngKey& key, Scratch<Real>&) const {
  return dither(v, s, p.p, key);
}

CompressorConstants TernGrad::constants(std::size_t dim) const {
  const double d = static_cast<double>(dim);
  return CompressorConstants::of_unbiased((std::sqrt(d) - 1) / 2, d);
}

template <class Real>
Packed<Real> TernGrad::round(std::span<Real> v, const RngKey& key, Scratch<Real>&) const {
  return dither(v, 1, std::numeric_limits<double>::infinity(), key);
}

CompressorConstants NaturalDithering::constants(std::size_t dim) const {
  const double lowest = root(dim, p.p) * std::ldexp(1.0, 1 - static_cast<int>(s));
  return CompressorConstants::of_unbiased(0.125 + lowest * std::min(1.0, lowest), static_cast<double>(dim));
}

template <class Real>
Packed<Real> NaturalDithering::round(std::span<Real> v, const RngKey& key, Scratch<Real>&) const {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  constexpr int kMantissa = std::numeric_limits<Real>::digits - 1;
  constexpr Bits kFraction = (Bits{1} << kMantissa) - 1;
  const Bits one = std::bit_cast<Bits>(Real(1));
  const Real lowest = std::ldexp(Real(1), 1 - static_cast<int>(s)), steps = 1 / lowest;
  const Real unit = unit_of(norm<Real>(v, p.p), largest_magnitude<Real>(v), 1);
  with_uniforms<Real>(key, unit == 0 ? 0 : v.size(), [&](std::size_t lo, std::span<const Real> u) {
    Real* const to = v.data() + lo;
    for (std::size_t j = 0; j < u.size(); ++j) {
      const Real r = std::min(std::abs(to[j]) / unit, Real(1));
      const Bits bits = std::bit_cast<Bits>(r);
      const Real below = std::bit_cast<Real>(static_cast<Bits>(bits & ~kFraction));
      const Real fraction = std::bit_cast<Real>(static_cast<Bits>((bits & kFraction) | one)) - 1;
      const Real inside = u[j] < fraction ? 2 * below : below;
      const Real under = u[j] < r * steps ? lowest : Real(0);
      to[j] = std::copysign((r < lowest ? under : inside) * unit, to[j]);
    }
  });
  return {Packing::kDithered, static_cast<std::uint16_t>(s), unit};
}

template Packed<float> Qsgd::round(std::span<float>, const RngKey&, Scratch<float>&) const;
template Packed<double> Qsgd::round(std::span<double>, const RngKey&, Scratch<double>&) const;
template Packed<float> TernGrad::round(std::span<float>, const RngKey&, Scratch<float>&) const;
template Packed<double> TernGrad::round(std::span<double>, const RngKey&, Scratch<double>&) const;
template Packed<float> NaturalDithering::round(std::span<float>, const RngKey&, Scratch<float>&) const;
template Packed<double> NaturalDithering::round(std::span<double>, const RngKey&, Scratch<double>&) const;

}  // namespace gradwire
