#include "fl_server/hub/quarantine.h"

#include <gtest/gtest.h>

namespace gradwire {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const SteadyTime kNoon = SteadyTime(hours(12));

TEST(Quarantine, KeepsOutFromTheThirdOffenceOnForTwiceAsLongEachTimeUpToAnHour) {
  Quarantine quarantine({});
  SteadyTime now = kNoon;
  EXPECT_EQ(quarantine.offence("a", now), seconds(0));
  EXPECT_EQ(quarantine.offence("a", now), seconds(0));
  for (int k = 0; k < 15; ++k) {
    const auto out = quarantine.offence("a", now);
    EXPECT_EQ(out, std::min<SteadyTime::duration>(seconds(1 << k), hours(1)));
    EXPECT_EQ(quarantine.left("a", now), out);
    EXPECT_EQ(quarantine.left("a", now + out / 2), out / 2);
    EXPECT_EQ(quarantine.left("a", now + out), seconds(0));
    now += out;
  }
}

TEST(Quarantine, ConcernsNobodyElse) {
  Quarantine quarantine({});
  for (int k = 0; k < 9; ++k) quarantine.offence("a", kNoon);
  EXPECT_EQ(quarantine.left("b", kNoon), seconds(0));
  EXPECT_EQ(quarantine.offence("b", kNoon), seconds(0));
}

TEST(Quarantine, TenMinutesWithoutAnOffenceForgiveOneOfThem) {
  Quarantine quarantine({});
  SteadyTime now = kNoon;
  for (int k = 0; k < 4; ++k) quarantine.offence("a", now);
  const SteadyTime free = now + quarantine.left("a", now);
  EXPECT_EQ(quarantine.offences("a", free + minutes(9)), 4u) << "what it is kept out is no good behaviour";
  EXPECT_EQ(quarantine.offences("a", free + minutes(20)), 2u);
  EXPECT_EQ(quarantine.offence("a", free + minutes(20)), seconds(1)) << "as its third one";
  EXPECT_EQ(quarantine.offences("a", free + hours(3)), 0u);
  EXPECT_EQ(quarantine.offence("a", free + hours(3)), seconds(0));
}

TEST(Quarantine, RemembersSoManyAndForgetsThoseWhoDidLeastFirst) {
  Quarantine quarantine({});
  for (int k = 0; k < 9; ++k) quarantine.offence("worst", kNoon);
  for (std::size_t k = 0; k < Quarantine::kMost + 1000; ++k)
    quarantine.offence(std::to_string(k), kNoon + seconds(k / 1000));
  EXPECT_EQ(quarantine.size(), Quarantine::kMost);
  EXPECT_GT(quarantine.left("worst", kNoon + seconds(13)), seconds(0));
  EXPECT_EQ(quarantine.offences("0", kNoon + seconds(13)), 0u);
}

TEST(Quarantine, OfNoLengthKeepsNobodyOut) {
  Quarantine quarantine({.longest = {}});
  for (int k = 0; k < 99; ++k) EXPECT_EQ(quarantine.offence("a", kNoon), seconds(0));
  EXPECT_EQ(quarantine.size(), 0u);
}

}  // namespace
}  // namespace gradwire
