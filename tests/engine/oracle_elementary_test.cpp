#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "engine/elementary.h"

namespace gradwire {
namespace {

template <class Real>
class Elementary : public ::testing::Test {
 protected:
  // Returns the largest relative error of `fast` compared with `exact` (long double) over [low, high], in
  // units of the type's epsilon.
  template <class Fast, class Exact>
  static double worst(Fast fast, Exact exact, double low, double high) {
    constexpr int kPoints = 40'000;
    long double error = 0;
    for (int i = 0; i <= kPoints; ++i) {
      const Real x = static_cast<Real>(low + (high - low) * i / kPoints);
      const long double want = exact(static_cast<long double>(x));
      if (want == 0) continue;
      error = std::max(error, std::abs((static_cast<long double>(fast(x)) - want) / want));
    }
    return static_cast<double>(error / std::numeric_limits<Real>::epsilon());
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Elementary, Reals);

TYPED_TEST(Elementary, ExpIsWithinTwoUlp) {
  const double high = static_cast<double>(ElementaryTraits<TypeParam>::kExpHigh);
  EXPECT_LE(this->worst([](TypeParam x) { return fast_exp(x); }, [](long double x) { return std::exp(x); },
                        static_cast<double>(ElementaryTraits<TypeParam>::kExpLow), high),
            2);
  EXPECT_LE(
      this->worst([](TypeParam x) { return fast_exp(x); }, [](long double x) { return std::exp(x); }, -1, 1),
      2);
}

TYPED_TEST(Elementary, TanhIsWithinThreeUlpEvenNearZero) {
  const auto exact = [](long double x) { return std::tanh(x); };
  EXPECT_LE(this->worst([](TypeParam x) { return fast_tanh(x); }, exact, -25, 25), 3);
  EXPECT_LE(this->worst([](TypeParam x) { return fast_tanh(x); }, exact, -1e-3, 1e-3), 3);
}

TYPED_TEST(Elementary, Log1pIsWithinTwoUlpEvenNearZero) {
  const auto exact = [](long double x) { return std::log1p(x); };
  EXPECT_LE(this->worst([](TypeParam x) { return log1p_unit(x); }, exact, 0, 1), 2);
  EXPECT_LE(this->worst([](TypeParam x) { return log1p_unit(x); }, exact, 0, 1e-9), 2);
}

TYPED_TEST(Elementary, ExtremesAreFiniteAndNanStaysNan) {
  using Real = TypeParam;
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
  EXPECT_EQ(fast_exp(Real(0)), 1);
  EXPECT_EQ(fast_exp(Real(-1e6)), 0);
  EXPECT_EQ(fast_exp(-kInfinity), 0);
  EXPECT_TRUE(std::isfinite(fast_exp(kInfinity)));
  EXPECT_EQ(fast_tanh(Real(0)), 0);
  EXPECT_EQ(fast_tanh(kInfinity), 1);
  EXPECT_EQ(fast_tanh(-kInfinity), -1);
  EXPECT_EQ(log1p_unit(Real(0)), 0);
  EXPECT_TRUE(std::isnan(fast_exp(kNan)));
  EXPECT_TRUE(std::isnan(fast_tanh(kNan)));
  EXPECT_TRUE(std::isnan(log1p_unit(kNan)));
}

}  // namespace
}  // namespace gradwire
