#include "engine/tape/lanes.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <type_traits>
#include <utility>

namespace gradwire {
namespace {

template <class T>
class LanesOf : public ::testing::Test {};
using Types = ::testing::Types<Lanes<double, 8>, Lanes<double, 4>, Lanes<float, 16>, Lanes<float, 8>>;
TYPED_TEST_SUITE(LanesOf, Types);

template <class L>
using RealOf = std::remove_cvref_t<decltype(std::declval<L&>()[0])>;

// Returns a number per lane, different in each.
template <class L>
L spread(double first, double step) {
  return L::make(
      [&](std::size_t i) { return static_cast<RealOf<L>>(first + step * static_cast<double>(i)); });
}

TYPED_TEST(LanesOf, ArithmeticAndFunctionsWorkLaneByLane) {
  using Real = RealOf<TypeParam>;
  const TypeParam a = spread<TypeParam>(0.3, 0.21), b = spread<TypeParam>(1.75, -0.3);
  TypeParam c = a;
  c += b;
  c *= 2;
  c -= 1;
  c /= a;
  for (std::size_t i = 0; i < TypeParam::size(); ++i) {
    const Real x = a[i], y = b[i];
    EXPECT_EQ((a + b)[i], x + y);
    EXPECT_EQ((a - b)[i], x - y);
    EXPECT_EQ((a * b)[i], x * y);
    EXPECT_EQ((a / b)[i], x / y);
    EXPECT_EQ((-a)[i], -x);
    EXPECT_EQ(c[i], ((x + y) * 2 - 1) / x);
    EXPECT_EQ((1 / a)[i], 1 / x);
    EXPECT_EQ(abs(b)[i], std::abs(y));
    EXPECT_EQ(max(a, b)[i], std::max(x, y));
    EXPECT_EQ(min(a, b)[i], std::min(x, y));
    EXPECT_EQ(sqrt(a)[i], std::sqrt(x));
    EXPECT_EQ(log(a)[i], std::log(x));
    EXPECT_EQ(sin(a)[i], std::sin(x));
    EXPECT_EQ(cos(a)[i], std::cos(x));
    EXPECT_EQ(pow(a, b)[i], std::pow(x, y));
  }
}

TYPED_TEST(LanesOf, ComparisonsChooseLaneByLane) {
  const TypeParam a = spread<TypeParam>(-1, 0.5), zero(0), one(1), two(2);
  for (std::size_t i = 0; i < TypeParam::size(); ++i) {
    EXPECT_EQ(select(a < zero, one, two)[i], a[i] < 0 ? 1 : 2);
    EXPECT_EQ(select(a <= zero, one, two)[i], a[i] <= 0 ? 1 : 2);
    EXPECT_EQ(select(a > zero, one, two)[i], a[i] > 0 ? 1 : 2);
    EXPECT_EQ(select(a >= zero, one, two)[i], a[i] >= 0 ? 1 : 2);
    EXPECT_EQ(select(a == zero, one, two)[i], a[i] == 0 ? 1 : 2);
    EXPECT_EQ(select(a != zero, one, two)[i], a[i] != 0 ? 1 : 2);
    EXPECT_EQ(select((a < zero) || (a > one), one, two)[i], a[i] < 0 || a[i] > 1 ? 1 : 2);
  }
}

TYPED_TEST(LanesOf, ExpAndTanhAreAccurateToAFewUlp) {
  using Real = RealOf<TypeParam>;
  const double ulp = std::numeric_limits<Real>::epsilon();
  for (double first = -90; first < 88; first += 0.37) {
    const TypeParam x = spread<TypeParam>(first, 0.013), e = exp(x), t = tanh(x);
    for (std::size_t i = 0; i < TypeParam::size(); ++i) {
      const double exact = std::exp(static_cast<double>(x[i])), flat = std::tanh(static_cast<double>(x[i]));
      if (exact > std::numeric_limits<Real>::min()) {
        EXPECT_NEAR(e[i] / exact, 1, 5 * ulp) << x[i];
      }
      EXPECT_NEAR(t[i] / flat, 1, 4 * ulp) << x[i];
    }
  }
}

TYPED_TEST(LanesOf, ExpOverflowsAndUnderflowsLikeStdExp) {
  using Real = RealOf<TypeParam>;
  const double edge = std::log(static_cast<double>(std::numeric_limits<Real>::max()));
  for (const double x : {edge - 0.001, edge - 0.3, edge + 0.001, 1e30, -1e30}) {
    const Real expected = std::exp(static_cast<Real>(x)), got = exp(TypeParam(static_cast<Real>(x)))[1];
    if (std::isinf(expected) || expected == 0) {
      EXPECT_EQ(got, expected) << x;
    } else {
      EXPECT_NEAR(got / expected, 1, 5 * std::numeric_limits<Real>::epsilon()) << x;
    }
  }
  const Real nan = std::numeric_limits<Real>::quiet_NaN();
  EXPECT_TRUE(std::isnan(exp(TypeParam(nan))[0]));
  EXPECT_TRUE(std::isnan(tanh(TypeParam(nan))[0]));
}

}  // namespace
}  // namespace gradwire
