#include "proto/config/client_seconds.h"

#include <cmath>
#include <gtest/gtest.h>

#include "base/config_error.h"

namespace gradwire {
namespace {

TEST(ClientSeconds, AreThoseOfTheWord) {
  EXPECT_EQ(parse_client_seconds("").of(1, 7, 3), 1);
  EXPECT_EQ(parse_client_seconds("2.5").of(1, 7, 3), 2.5);
  EXPECT_EQ(parse_client_seconds("sqrt").of(1, 8, 3), 3);
  EXPECT_EQ(parse_client_seconds("linear").of(1, 0, 3), 1);
  EXPECT_EQ(parse_client_seconds("0.5*linear").of(1, 9, 3), 5);
}

TEST(ClientSeconds, AreDrawnAnewForEachRequestWithMeanOne) {
  const ClientSeconds seconds = parse_client_seconds("3*lognormal:0.5");
  EXPECT_EQ(seconds.of(1, 2, 3), seconds.of(1, 2, 3));
  EXPECT_NE(seconds.of(1, 2, 3), seconds.of(1, 2, 4));
  EXPECT_NE(seconds.of(1, 2, 3), seconds.of(1, 3, 3));
  EXPECT_NE(seconds.of(1, 2, 3), seconds.of(2, 2, 3));
  double mean = 0, square = 0;
  constexpr int kDraws = 20000;
  for (int k = 0; k < kDraws; ++k) {
    const double s = seconds.of(1, 5, k) / 3;
    EXPECT_GT(s, 0);
    mean += s / kDraws;
    square += s * s / kDraws;
  }
  EXPECT_NEAR(mean, 1, 0.02);
  EXPECT_NEAR(square, std::exp(0.25), 0.06);  // E s^2 = e^(sigma^2)
}

TEST(ClientSeconds, RefuseWhatIsNoSpeed) {
  const auto complaint = [](const char* text) -> std::string {
    try {
      parse_client_seconds(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  for (const char* text : {"0", "-1", "nan", "inf", "1e13", "1 s", "sqroot", "lognormal",
                           "lognormal:", "lognormal:-1", "lognormal:11", "x*sqrt", "2*", "2*3", "0*linear"})
    EXPECT_NE(complaint(text), "") << text;
  EXPECT_NE(complaint("sqroot").find("did you mean 'sqrt'"), std::string::npos) << complaint("sqroot");
}

}  // namespace
}  // namespace gradwire
