#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>

#include "base/value.h"

namespace gradwire {
namespace {

TEST(NumberText, IsTheSameByTrialForNumbersThatPeopleWrite) {
  for (const double x : {0.0,
                         -0.0,
                         1.0,
                         -1.0,
                         0.1,
                         0.29,
                         1e5,
                         100000.0,
                         123456.0,
                         1e6,
                         1e-5,
                         0.0001,
                         1e15,
                         1e16,
                         1e17,
                         1e21,
                         1e22,
                         1e23,
                         0.3,
                         2.0 / 3,
                         1e300,
                         -2.5e-7,
                         12345678901234567890.0})
    EXPECT_EQ(number_text_by_trial(x), number_text(x));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(number_text_by_trial(infinity), number_text(infinity));
  EXPECT_EQ(number_text_by_trial(-infinity), number_text(-infinity));
}

TEST(NumberText, ReadsBackByTrialForAnyBits) {
  std::mt19937_64 random(7);
  int different = 0;
  for (int k = 0; k < 20'000; ++k) {
    double x = std::bit_cast<double>(random());
    if (k % 4 == 0) x = std::ldexp(1, static_cast<int>(random() % 2000) - 1050);
    if (k % 4 == 1) x = static_cast<double>(random() % 1'000'000) / 1000;
    if (!std::isfinite(x)) continue;
    const std::string text = number_text_by_trial(x);
    ASSERT_EQ(std::strtod(text.c_str(), nullptr), x) << text;
    if (text != number_text(x)) {
      ++different;
      int exponent = 0;
      ASSERT_EQ(std::abs(std::frexp(x, &exponent)), 0.5) << text << " is not a power of two";
    }
  }
  EXPECT_LT(different, 1'000);
}

}  // namespace
}  // namespace gradwire
