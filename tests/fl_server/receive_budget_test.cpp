#include "fl_server/net/receive_budget.h"

#include <gtest/gtest.h>
#include <vector>

#include "base/random.h"

namespace gradwire {
namespace {

struct Arrival final : ReceiveBudgetWaiter {
  std::uint64_t bytes = 0;
  bool holds = false;
  void on_room() override { holds = true; }
};

TEST(ReceiveBudget, AdmitsWhatFitsAndThenTheOldestFirst) {
  ReceiveBudget receive_budget;
  receive_budget.limit(100);
  Arrival a, b, c, d;
  EXPECT_TRUE(receive_budget.reserve(a, 60));
  EXPECT_FALSE(receive_budget.reserve(b, 50));
  EXPECT_FALSE(receive_budget.reserve(c, 10)) << "it would overtake b";
  EXPECT_FALSE(receive_budget.reserve(d, 60));
  receive_budget.serve_waiters();
  EXPECT_FALSE(b.holds || c.holds);
  receive_budget.release(60);
  receive_budget.serve_waiters();
  EXPECT_TRUE(b.holds && c.holds);
  EXPECT_FALSE(d.holds);
  EXPECT_EQ(receive_budget.used(), 60u);
}

TEST(ReceiveBudget, GivesAPayloadBeyondTheBudgetAllOfIt) {
  ReceiveBudget receive_budget;
  receive_budget.limit(100);
  Arrival large, small;
  EXPECT_TRUE(receive_budget.reserve(large, 1000));
  EXPECT_FALSE(receive_budget.reserve(small, 1));
  receive_budget.release(1000);
  receive_budget.serve_waiters();
  EXPECT_TRUE(small.holds);
}

TEST(ReceiveBudget, ForgetsWaitersThatLeave) {
  ReceiveBudget receive_budget;
  receive_budget.limit(10);
  Arrival a, b, c;
  EXPECT_TRUE(receive_budget.reserve(a, 10));
  EXPECT_FALSE(receive_budget.reserve(b, 10));
  EXPECT_FALSE(receive_budget.reserve(c, 10));
  receive_budget.forget(b);
  receive_budget.release(10);
  receive_budget.serve_waiters();
  EXPECT_FALSE(b.holds);
  EXPECT_TRUE(c.holds);
}

// For any sizes and any order of releases, the budget is never exceeded and each waiter gets its turn.
TEST(ReceiveBudget, ServesEachWaiter) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed, "staging");
    ReceiveBudget receive_budget;
    receive_budget.limit(100);
    std::vector<Arrival> all(200);
    for (Arrival& arrival : all) {
      arrival.bytes = 1 + random.below(150);
      arrival.holds = receive_budget.reserve(arrival, arrival.bytes);
    }
    std::size_t ended = 0;
    for (; ended < all.size(); ++ended) {
      std::vector<Arrival*> holders;
      std::uint64_t held = 0;
      for (Arrival& arrival : all)
        if (arrival.holds) holders.push_back(&arrival), held += arrival.bytes;
      ASSERT_FALSE(holders.empty()) << "seed " << seed << ": deadlock";
      ASSERT_TRUE(held <= 100 || holders.size() == 1) << "seed " << seed;
      ASSERT_EQ(receive_budget.used(), held);
      Arrival& done = *holders[random.below(holders.size())];
      done.holds = false;
      receive_budget.release(done.bytes);
      receive_budget.serve_waiters();
    }
    EXPECT_FALSE(receive_budget.awaited());
  }
}

}  // namespace
}  // namespace gradwire
