#include "compressors/natural.h"

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace gradwire {
namespace {

template <class Real>
class NaturalOf : public ::testing::Test {
 protected:
  using Limits = std::numeric_limits<Real>;

  static Vec<Real> compressed(Vec<Real> v, const RngKey& key) {
    Scratch<Real> scratch;
    PayloadBuffer<Real> buffer;
    const Payload<Real>& p = Natural{}(v, key, scratch, buffer);
    return {p.values.begin(), p.values.end()};
  }
  // The powers of two (or zero) around |t|, and the probability to round up. This is the distance of |t| from
  // `lower`, relative to the distance of `upper` from `lower`.
  struct Around {
    Real lower, upper, fraction;
  };
  static Around around(Real t) {
    t = std::abs(t);
    if (t < Limits::min()) return {0, Limits::min(), t / Limits::min()};
    int exponent = 0;
    std::frexp(t, &exponent);  // t = m 2^exponent with m in [1/2, 1)
    const Real lower = std::ldexp(Real(1), exponent - 1);
    return {lower, exponent == Limits::max_exponent ? lower : lower * 2, t / lower - 1};
  }
  // Returns numbers of all binades, in random order.
  static Vec<Real> spread(std::size_t d) {
    RngStream stream({.seed = 8});
    Vec<Real> v(d);
    for (Real& t : v) {
      const int exponent = Limits::min_exponent - 20 +
                           static_cast<int>(stream.below(Limits::max_exponent - Limits::min_exponent + 20));
      t = static_cast<Real>(std::ldexp(1 + stream.uniform(), exponent)) *
          (stream.below(2) == 0 ? Real(1) : Real(-1));
    }
    return v;
  }
  // The mean of `draws` roundings of t, and of their squared errors.
  struct Moments {
    double mean = 0, error_sq = 0;
  };
  static Moments moments(Real t, std::uint32_t draws, Real unit) {
    Moments m;
    for (const double r : compressed(Vec<Real>(draws, t), {.seed = 17})) {
      const double scaled = r / static_cast<double>(unit), target = t / static_cast<double>(unit);
      m.mean += scaled / draws;
      m.error_sq += (scaled - target) * (scaled - target) / draws;
    }
    return m;
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NaturalOf, Reals);

TYPED_TEST(NaturalOf, EveryEntryMatchesTheFormulaForTheSameDraws) {
  using Limits = std::numeric_limits<TypeParam>;
  constexpr int kFractionBits = Limits::digits - 1;
  const RngKey key{.seed = 2, .client = 3, .round = 4, .domain = RngDomain::kCompressor};
  const Vec<TypeParam> x = this->spread(20'000);
  const Vec<TypeParam> rounded = this->compressed(x, key);
  RngStream stream(key);
  int down = 0, up = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const auto [lower, upper, fraction] = this->around(x[j]);
    const TypeParam u =
        std::ldexp(static_cast<TypeParam>(stream.next() >> (64 - kFractionBits)), -kFractionBits);
    const TypeParam expected = std::copysign(u < fraction ? upper : lower, x[j]);
    ASSERT_EQ(rounded[j], expected) << x[j];
    ASSERT_EQ(std::signbit(rounded[j]), std::signbit(x[j]));
    (u < fraction ? up : down) += 1;
  }
  EXPECT_GT(down, 8000);
  EXPECT_GT(up, 8000);
}

TYPED_TEST(NaturalOf, GoesUpWithTheProbabilityOfItsDistance) {
  const std::uint32_t draws = 40'000;
  for (const double target : {1.0, 1.001, 1.25, 4.0 / 3, 1.5, 1.75, 1.999}) {
    for (const int exponent : {0, -30, 30}) {
      const auto unit = static_cast<TypeParam>(std::ldexp(1.0, exponent));
      const auto t = static_cast<TypeParam>(-target * unit);
      const auto m = this->moments(t, draws, unit);
      const double p = target - 1, deviation = std::sqrt(p * (1 - p) / draws);
      EXPECT_NEAR(m.mean, -target, 5 * deviation + 1e-6);
      // E (C(t) - t)^2 = f (1 - f), at most t^2 / 8, which t = 4/3 attains.
      EXPECT_NEAR(m.error_sq, p * (1 - p), 5 * deviation + 1e-6);
      EXPECT_LE(p * (1 - p), target * target / 8 + 1e-12);
    }
  }
  const double worst = 4.0 / 3;
  EXPECT_NEAR(this->moments(static_cast<TypeParam>(worst), draws, 1).error_sq / (worst * worst), 0.125,
              0.002);
}

TYPED_TEST(NaturalOf, KeepsPowersOfTwoAndZeros) {
  using Limits = std::numeric_limits<TypeParam>;
  Vec<TypeParam> x = {TypeParam(0.0),
                      TypeParam(-0.0),
                      1,
                      -2,
                      TypeParam(0.125),
                      Limits::min(),
                      -Limits::min(),
                      std::ldexp(TypeParam(1), Limits::max_exponent - 1)};
  for (std::uint32_t round = 0; round < 200; ++round) {
    const Vec<TypeParam> rounded = this->compressed(x, {.round = round});
    for (std::size_t j = 0; j < x.size(); ++j) {
      ASSERT_EQ(rounded[j], x[j]);
      ASSERT_EQ(std::signbit(rounded[j]), std::signbit(x[j]));
    }
  }
}

TEST(Natural, SmallestPossibleDrawMovesNoPowerOfTwo) {
  const RngKey key{.seed = 15936027};
  ASSERT_EQ(RngStream(key).next() >> (64 - 23), 0u);
  Vec<float> v = {-4};
  Scratch<float> scratch;
  PayloadBuffer<float> buffer;
  EXPECT_EQ(Natural{}(v, key, scratch, buffer).values[0], -4);
}

TYPED_TEST(NaturalOf, NeverRoundsTheLargestNumbersToInfinity) {
  using Limits = std::numeric_limits<TypeParam>;
  const TypeParam largest_power = std::ldexp(TypeParam(1), Limits::max_exponent - 1);
  for (const TypeParam r : this->compressed(Vec<TypeParam>(2000, -Limits::max()), {}))
    ASSERT_EQ(r, -largest_power);
}

TYPED_TEST(NaturalOf, RoundsSubnormalNumbersToZeroOrTheSmallestNormalOneWithoutBias) {
  using Limits = std::numeric_limits<TypeParam>;
  const std::uint32_t draws = 40'000;
  for (const double share : {0.25, 0.5, 0.9}) {
    const TypeParam t = -Limits::min() * static_cast<TypeParam>(share);
    ASSERT_EQ(std::fpclassify(t), FP_SUBNORMAL);
    for (const TypeParam r : this->compressed(Vec<TypeParam>(100, t), {})) {
      ASSERT_TRUE(r == 0 || r == -Limits::min());
      ASSERT_TRUE(std::signbit(r));
    }
    EXPECT_NEAR(this->moments(t, draws, Limits::min()).mean, -share, 5 * std::sqrt(0.25 / draws));
  }
  for (const TypeParam r : this->compressed(Vec<TypeParam>(1000, Limits::denorm_min()), {})) ASSERT_EQ(r, 0);
}

}  // namespace
}  // namespace gradwire
