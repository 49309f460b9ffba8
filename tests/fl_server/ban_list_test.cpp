#include "fl_server/sessions/ban_list.h"

#include <gtest/gtest.h>

namespace gradwire {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const SteadyTime kNoon = SteadyTime(hours(12));

TEST(BanList, BansFromTheThirdViolationOnForTwiceAsLongEachTimeUpToAnHour) {
  BanList bans({});
  SteadyTime now = kNoon;
  EXPECT_EQ(bans.violation("a", now), seconds(0));
  EXPECT_EQ(bans.violation("a", now), seconds(0));
  for (int k = 0; k < 15; ++k) {
    const auto out = bans.violation("a", now);
    EXPECT_EQ(out, std::min<SteadyTime::duration>(seconds(1 << k), hours(1)));
    EXPECT_EQ(bans.left("a", now), out);
    EXPECT_EQ(bans.left("a", now + out / 2), out / 2);
    EXPECT_EQ(bans.left("a", now + out), seconds(0));
    now += out;
  }
}

TEST(BanList, AffectsOnlyTheOffender) {
  BanList bans({});
  for (int k = 0; k < 9; ++k) bans.violation("a", kNoon);
  EXPECT_EQ(bans.left("b", kNoon), seconds(0));
  EXPECT_EQ(bans.violation("b", kNoon), seconds(0));
}

TEST(BanList, ForgivesOneViolationAfterTenMinutesWithoutAny) {
  BanList bans({});
  SteadyTime now = kNoon;
  for (int k = 0; k < 4; ++k) bans.violation("a", now);
  const SteadyTime free = now + bans.left("a", now);
  EXPECT_EQ(bans.violations("a", free + minutes(9)), 4u)
      << "the time of a ban does not count as good behaviour";
  EXPECT_EQ(bans.violations("a", free + minutes(20)), 2u);
  EXPECT_EQ(bans.violation("a", free + minutes(20)), seconds(1)) << "as for its third violation";
  EXPECT_EQ(bans.violations("a", free + hours(3)), 0u);
  EXPECT_EQ(bans.violation("a", free + hours(3)), seconds(0));
}

TEST(BanList, KeepsABoundedNumberAndForgetsTheLeastOffendersFirst) {
  BanList bans({});
  for (int k = 0; k < 9; ++k) bans.violation("worst", kNoon);
  for (std::size_t k = 0; k < BanList::kMost + 1000; ++k)
    bans.violation(std::to_string(k), kNoon + seconds(k / 1000));
  EXPECT_EQ(bans.size(), BanList::kMost);
  EXPECT_GT(bans.left("worst", kNoon + seconds(13)), seconds(0));
  EXPECT_EQ(bans.violations("0", kNoon + seconds(13)), 0u);
}

TEST(BanList, BansNoPeerIfBansHaveNoLength) {
  BanList bans({.longest = {}});
  for (int k = 0; k < 99; ++k) EXPECT_EQ(bans.violation("a", kNoon), seconds(0));
  EXPECT_EQ(bans.size(), 0u);
}

}  // namespace
}  // namespace gradwire
