#include "fl_server/net/staging.h"

#include <gtest/gtest.h>
#include <vector>

#include "base/random.h"

namespace gradwire {
namespace {

struct Arrival final : StagingWaiter {
  std::uint64_t bytes = 0;
  bool holds = false;
  void on_room() override { holds = true; }
};

TEST(Staging, LetsInWhatFitsAndThenTheOldestFirst) {
  Staging staging;
  staging.limit(100);
  Arrival a, b, c, d;
  EXPECT_TRUE(staging.reserve(a, 60));
  EXPECT_FALSE(staging.reserve(b, 50));
  EXPECT_FALSE(staging.reserve(c, 10)) << "it would overtake b";
  EXPECT_FALSE(staging.reserve(d, 60));
  staging.go_on();
  EXPECT_FALSE(b.holds || c.holds);
  staging.release(60);
  staging.go_on();
  EXPECT_TRUE(b.holds && c.holds);
  EXPECT_FALSE(d.holds);
  EXPECT_EQ(staging.used(), 60u);
}

TEST(Staging, GivesAPayloadBeyondTheBudgetAllOfIt) {
  Staging staging;
  staging.limit(100);
  Arrival large, small;
  EXPECT_TRUE(staging.reserve(large, 1000));
  EXPECT_FALSE(staging.reserve(small, 1));
  staging.release(1000);
  staging.go_on();
  EXPECT_TRUE(small.holds);
}

TEST(Staging, ForgetsWhoLeaves) {
  Staging staging;
  staging.limit(10);
  Arrival a, b, c;
  EXPECT_TRUE(staging.reserve(a, 10));
  EXPECT_FALSE(staging.reserve(b, 10));
  EXPECT_FALSE(staging.reserve(c, 10));
  staging.forget(b);
  staging.release(10);
  staging.go_on();
  EXPECT_FALSE(b.holds);
  EXPECT_TRUE(c.holds);
}

// Whatever the sizes and the order in which they end: never more than the budget, and everybody gets a turn.
TEST(Staging, NobodyWaitsForEver) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed, "staging");
    Staging staging;
    staging.limit(100);
    std::vector<Arrival> all(200);
    for (Arrival& arrival : all) {
      arrival.bytes = 1 + random.below(150);
      arrival.holds = staging.reserve(arrival, arrival.bytes);
    }
    std::size_t ended = 0;
    for (; ended < all.size(); ++ended) {
      std::vector<Arrival*> holders;
      std::uint64_t held = 0;
      for (Arrival& arrival : all)
        if (arrival.holds) holders.push_back(&arrival), held += arrival.bytes;
      ASSERT_FALSE(holders.empty()) << "seed " << seed << ": they wait for each other";
      ASSERT_TRUE(held <= 100 || holders.size() == 1) << "seed " << seed;
      ASSERT_EQ(staging.used(), held);
      Arrival& done = *holders[random.below(holders.size())];
      done.holds = false;
      staging.release(done.bytes);
      staging.go_on();
    }
    EXPECT_FALSE(staging.awaited());
  }
}

}  // namespace
}  // namespace gradwire
