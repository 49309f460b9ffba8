// Storage types of 16 bits: IEEE 754 binary16, and bfloat16 (the upper half of a float). They are converted
// to float for arithmetic, and rounded back to nearest, ties to even. NaN stays NaN; values that are too
// large become infinite. Arrays are converted in blocks, by loops that are vectorized.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/array_format.h"

namespace gradwire {

namespace half_detail {

// Rounds a double to odd (Boldo and Melquiond 2008): sets the last bit if the result is inexact. This keeps
// enough bits for the second rounding to be right. Two roundings to nearest could give another result than
// one.
[[gnu::always_inline]] inline float to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  const bool inexact = back != x && x == x;
  const bool too_far = (x < 0 ? -back : back) > (x < 0 ? -x : x);
  return std::bit_cast<float>(inexact ? (bits - (too_far ? 1u : 0u)) | 1u : bits);
}

}  // namespace half_detail

struct Float16 {
  using Compute = float;
  static constexpr NumberType kNumberType = NumberType::kFp16;

  Float16() = default;
  [[gnu::always_inline]] Float16(float x) : bits(round(x)) {}
  [[gnu::always_inline]] Float16(double x) : bits(round(half_detail::to_odd(x))) {}
  Float16(std::integral auto x) : Float16(static_cast<double>(x)) {}
  static Float16 of_bits(std::uint16_t bits) {
    Float16 x;
    x.bits = bits;
    return x;
  }

  [[gnu::always_inline]] explicit operator float() const {
    const std::uint32_t size = bits & 0x7fffu;
    // Reinterpreted as a float, these bits are too small by a factor of 2^112. This also holds for subnormal
    // numbers.
    const float scaled = std::bit_cast<float>(size << 13) * 0x1p112f;
    const std::uint32_t finite = std::bit_cast<std::uint32_t>(scaled);
    const std::uint32_t value = size >= 0x7c00u ? finite | 0x7f800000u : finite;
    return std::bit_cast<float>(value | static_cast<std::uint32_t>(bits & 0x8000u) << 16);
  }
  [[gnu::always_inline]] explicit operator double() const { return static_cast<float>(*this); }

  std::uint16_t bits;

 private:
  [[gnu::always_inline]] static std::uint16_t round(float x) {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(x), size = all & 0x7fffffffu;
    // Normal: subtract 112 from the exponent and round 13 bits away; a carry increments the exponent.
    const std::uint32_t normal = (size + 0xfffu + (size >> 13 & 1u) - (112u << 23)) >> 13;
    // Subnormal: adding 1/2 makes the processor round to the last bit of the result.
    const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
    std::uint32_t value = size < 0x38800000u ? small : normal;
    value = size >= 0x47800000u ? 0x7c00u : value;
    value = size > 0x7f800000u ? 0x7e00u : value;
    return static_cast<std::uint16_t>(value | (all >> 16 & 0x8000u));
  }
};

struct BFloat16 {
  using Compute = float;
  static constexpr NumberType kNumberType = NumberType::kBf16;

  BFloat16() = default;
  [[gnu::always_inline]] BFloat16(float x) : bits(round(x)) {}
  [[gnu::always_inline]] BFloat16(double x) : bits(round(half_detail::to_odd(x))) {}
  BFloat16(std::integral auto x) : BFloat16(static_cast<double>(x)) {}
  static BFloat16 of_bits(std::uint16_t bits) {
    BFloat16 x;
    x.bits = bits;
    return x;
  }

  [[gnu::always_inline]] explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  [[gnu::always_inline]] explicit operator double() const { return static_cast<float>(*this); }

  std::uint16_t bits;

 private:
  [[gnu::always_inline]] static std::uint16_t round(float x) {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t nearest = (all + 0x7fffu + (all >> 16 & 1u)) >> 16;
    const bool is_nan = (all & 0x7fffffffu) > 0x7f800000u;
    return static_cast<std::uint16_t>(is_nan ? (all >> 16 | 0x40u) : nearest);
  }
};

static_assert(sizeof(Float16) == 2 && sizeof(BFloat16) == 2);
static_assert(std::is_trivially_copyable_v<Float16> && std::is_trivially_copyable_v<BFloat16>);

// Converts all numbers. REQUIRES: equal sizes, no overlap.
void convert(std::span<const float> from, std::span<Float16> to);
void convert(std::span<const double> from, std::span<Float16> to);
void convert(std::span<const Float16> from, std::span<float> to);
void convert(std::span<const Float16> from, std::span<double> to);
void convert(std::span<const float> from, std::span<BFloat16> to);
void convert(std::span<const double> from, std::span<BFloat16> to);
void convert(std::span<const BFloat16> from, std::span<float> to);
void convert(std::span<const BFloat16> from, std::span<double> to);

}  // namespace gradwire
