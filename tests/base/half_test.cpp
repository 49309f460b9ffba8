// 16-bit numbers compared with the definition, computed in double.
#include "base/half.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

namespace gradwire {
namespace {

// The parameters of a 16-bit format: the number of stored mantissa bits, and the exponents of the smallest
// and the largest normal number.
template <class T>
struct Definition;
template <>
struct Definition<Float16> {
  static constexpr int kMantissa = 10, kLowest = -14, kHighest = 15;
};
template <>
struct Definition<BFloat16> {
  static constexpr int kMantissa = 7, kLowest = -126, kHighest = 127;
};

// Returns the value of the bits.
template <class T>
double meaning(std::uint16_t bits) {
  using D = Definition<T>;
  const int mantissa = bits & ((1 << D::kMantissa) - 1), exponent = (bits & 0x7fff) >> D::kMantissa;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (0x7fff >> D::kMantissa))
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, D::kLowest - D::kMantissa);
  return sign * std::ldexp((1 << D::kMantissa) + mantissa, exponent - 1 + D::kLowest - D::kMantissa);
}

// Returns x rounded to the nearest number of T, ties to even, in double.
template <class T>
double nearest(double x) {
  using D = Definition<T>;
  if (!std::isfinite(x) || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), D::kLowest);
  const double unit = std::ldexp(1, exponent - D::kMantissa);
  const double rounded = std::nearbyint(x / unit) * unit;
  const double most = std::ldexp(2 - std::ldexp(1, -D::kMantissa), D::kHighest);
  return std::abs(rounded) > most ? std::copysign(std::numeric_limits<double>::infinity(), x) : rounded;
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T>
class Half : public ::testing::Test {};
using Halves = ::testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(Half, Halves);

TYPED_TEST(Half, EveryBitPatternHasItsValueAndRoundTrips) {
  std::vector<TypeParam> all, back(65536);
  for (unsigned bits = 0; bits < 65536; ++bits)
    all.push_back(TypeParam::of_bits(static_cast<std::uint16_t>(bits)));
  std::vector<float> floats(all.size());
  std::vector<double> doubles(all.size());
  convert(all, floats);
  convert(all, doubles);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const double expected = meaning<TypeParam>(static_cast<std::uint16_t>(k));
    ASSERT_TRUE(same(static_cast<double>(floats[k]), expected)) << k;
    ASSERT_TRUE(same(doubles[k], expected)) << k;
  }
  convert(std::span<const float>(floats), std::span<TypeParam>(back));
  for (std::size_t k = 0; k < all.size(); ++k) ASSERT_TRUE(back[k].bits == k || std::isnan(floats[k])) << k;
  convert(std::span<const double>(doubles), std::span<TypeParam>(back));
  for (std::size_t k = 0; k < all.size(); ++k)
    ASSERT_TRUE(back[k].bits == k || (std::isnan(doubles[k]) && std::isnan(static_cast<double>(back[k]))))
        << k;
}

TYPED_TEST(Half, RoundsToTheNearestAndTiesToEven) {
  const auto check = [](double x) {
    ASSERT_TRUE(same(static_cast<double>(TypeParam(x)), nearest<TypeParam>(x))) << x;
    const float f = static_cast<float>(x);
    ASSERT_TRUE(same(static_cast<double>(TypeParam(f)), nearest<TypeParam>(static_cast<double>(f)))) << f;
  };
  // Checks every number, the midpoints of neighbours, and the doubles next to both. A midpoint that goes
  // through float would be rounded twice.
  for (unsigned bits = 0; bits < 0x7fff; ++bits) {
    const double a = meaning<TypeParam>(static_cast<std::uint16_t>(bits));
    const double b = meaning<TypeParam>(static_cast<std::uint16_t>(bits + 1));
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    for (const double x : {a, (a + b) / 2})
      for (const double near : {x, std::nextafter(x, 1e300), std::nextafter(x, -1e300)}) {
        check(near);
        check(-near);
      }
  }
  std::mt19937_64 random(1);
  for (int k = 0; k < 200'000; ++k) {
    const double x = std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 320) - 220);
    check(k % 2 == 0 ? x : -x);
  }
  for (const double x :
       {65504.0, 65519.99, 65520.0, 65536.0, 1e30, 3.39e38, 3.4e38, 1e300, 1e-300, 0.0, -0.0})
    check(x);
  check(std::numeric_limits<double>::infinity());
  check(std::numeric_limits<double>::quiet_NaN());
}

TYPED_TEST(Half, SavesAndLoads) {
  const std::vector<TypeParam> x = {TypeParam(1.5f), TypeParam(-2.0f)};
  std::vector<TypeParam> y(2);
  ASSERT_TRUE(numbers_from_bytes<TypeParam>(numbers_to_bytes<TypeParam>(x), y));
  EXPECT_EQ(y[1].bits, x[1].bits);
}

}  // namespace
}  // namespace gradwire
