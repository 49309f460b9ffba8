#include "fl_server/sessions/rate_limit.h"

#include <gtest/gtest.h>

namespace gradwire {
namespace {

using namespace std::chrono_literals;
constexpr SteadyTime kBegin{1000s};

int taken(RateLimit& limit, int attempts, SteadyTime now) {
  int count = 0;
  for (int k = 0; k < attempts; ++k) count += limit.take(now) ? 1 : 0;
  return count;
}

TEST(RateLimit, PermitsABurstAndThenTheRate) {
  RateLimit limit({.per_second = 10, .burst = 4});
  EXPECT_EQ(taken(limit, 100, kBegin), 4);
  EXPECT_EQ(taken(limit, 100, kBegin + 99ms), 0);
  EXPECT_EQ(taken(limit, 100, kBegin + 100ms), 1);
  EXPECT_EQ(taken(limit, 100, kBegin + 400ms), 3);
  EXPECT_EQ(taken(limit, 100, kBegin + 1h), 4) << "no more than the burst";
  EXPECT_FALSE(limit.is_full(kBegin + 1h));
  EXPECT_TRUE(limit.is_full(kBegin + 1h + 400ms));
}

TEST(RateLimit, PermitsAllWithoutARate) {
  RateLimit limit;
  EXPECT_EQ(taken(limit, 1000, kBegin), 1000);
}

TEST(RateLimit, ToleratesAClockThatStandsStill) {
  RateLimit limit({.per_second = 10, .burst = 2});
  EXPECT_EQ(taken(limit, 2, kBegin), 2);
  EXPECT_EQ(taken(limit, 2, kBegin - 1s), 0);
}

constexpr HandshakeRates kRates{.from_address = {.per_second = 1, .burst = 3},
                                .in_all = {.per_second = 2, .burst = 5}};

TEST(HandshakeLimit, LimitsEachAddressAndTheTotal) {
  HandshakeLimit limit(kRates);
  int a = 0, b = 0, c = 0;
  for (int k = 0; k < 10; ++k) {
    a += limit.take("a", false, kBegin) ? 1 : 0;
    b += limit.take("b", false, kBegin) ? 1 : 0;
    c += limit.take("c", false, kBegin) ? 1 : 0;
  }
  EXPECT_LE(std::max({a, b, c}), 3);
  EXPECT_EQ(a + b + c, 5);
  EXPECT_TRUE(limit.take("d", false, kBegin + 1s));
}

TEST(HandshakeLimit, AdmitsKnownAddressesDuringAFlood) {
  HandshakeLimit limit(kRates);
  for (int k = 0; k < 100; ++k) limit.take("peer " + std::to_string(k), false, kBegin);
  EXPECT_FALSE(limit.take("another", false, kBegin));
  EXPECT_TRUE(limit.take("home", true, kBegin));
  EXPECT_TRUE(limit.take("home", true, kBegin));
  EXPECT_TRUE(limit.take("home", true, kBegin));
  EXPECT_FALSE(limit.take("home", true, kBegin)) << "its own share is used up";
}

TEST(HandshakeLimit, RemembersABoundedNumberOfAddresses) {
  HandshakeLimit limit(kRates);
  for (std::size_t k = 0; k < 3 * HandshakeLimit::kMost; ++k)
    limit.take("address " + std::to_string(k), true, kBegin);
  EXPECT_LE(limit.size(), HandshakeLimit::kMost);
  for (int k = 0; k < 3; ++k) limit.take("last", true, kBegin);
  EXPECT_TRUE(limit.take("first of an hour later", true, kBegin + 1h));
  EXPECT_LE(limit.size(), 2u) << "full buckets are forgotten first";
}

}  // namespace
}  // namespace gradwire
