#include "parallel/thread_pool.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "parallel/in_order.h"
#include "tests/support/new_threads.h"

namespace gradwire {
namespace {

constexpr unsigned kThreads[] = {1, 2, 3, 7, 16};

TEST(ThreadPool, CallsTheBodyOnceForEachItemInManyLoops) {
  for (const unsigned threads : kThreads) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (std::size_t loop = 0; loop < 300; ++loop) {
      const std::size_t items = loop % 40;
      std::vector<std::atomic<int>> calls(items);
      pool.for_each(items, [&](unsigned thread, std::size_t item) {
        EXPECT_LT(thread, threads);
        ++calls[item];
      });
      for (const auto& c : calls) EXPECT_EQ(c, 1);
    }
  }
}

TEST(ThreadPool, StartsThreadsAtTheFirstLoopOfSeveralItems) {
  const NewThreads new_threads;
  ThreadPool pool(3);
  pool.for_each(1, [](unsigned, std::size_t) {});
  EXPECT_EQ(new_threads.count(), 0);
  pool.for_each(2, [](unsigned, std::size_t) {});
  EXPECT_EQ(new_threads.count(), 2);
}

TEST(ThreadPool, WakesThreadsThatSleep) {
  ThreadPool pool(2);
  for (int loop = 0; loop < 3; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> met = 0;
    pool.for_each(2, [&](unsigned, std::size_t) {  // ends only if two threads are in it
      ++met;
      while (met < 2) std::this_thread::yield();
    });
    EXPECT_EQ(met, 2);
  }
}

TEST(ThreadPool, GivesTheItemsOfASlowThreadToTheOthers) {
  ThreadPool pool(2);
  std::atomic<std::size_t> others = 0;
  pool.for_each(20, [&](unsigned, std::size_t item) {
    if (item > 0) {
      ++others;
      return;
    }
    while (others < 19) std::this_thread::yield();
  });
  EXPECT_EQ(others, 19u);
}

TEST(ThreadPool, RethrowsAnExceptionAndStaysUsable) {
  for (const unsigned threads : kThreads) {
    ThreadPool pool(threads);
    std::atomic<int> calls = 0;
    EXPECT_THROW(pool.for_each(1000,
                               [&](unsigned, std::size_t item) {
                                 ++calls;
                                 if (item == 3) throw std::runtime_error("item 3");
                               }),
                 std::runtime_error);
    EXPECT_GT(calls, 0);
    calls = 0;
    pool.for_each(50, [&](unsigned, std::size_t) { ++calls; });
    EXPECT_EQ(calls, 50);
  }
}

TEST(ThreadPool, CanBeDestroyedWhileItsThreadsStartOrWait) {
  for (int k = 0; k < 100; ++k) {
    ThreadPool pool(3);
    if (k % 3 > 0) pool.for_each(5, [](unsigned, std::size_t) {});
    if (k % 3 > 1) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

TEST(InOrder, UsesItemsInAscendingOrderWhateverTheOrderOfArrival) {
  constexpr std::size_t kItems = 100;
  for (const unsigned threads : kThreads) {
    ThreadPool pool(threads);
    InOrder order;
    for (int loop = 0; loop < 50; ++loop) {
      std::vector<std::size_t> used, kept(kItems);
      order.begin(kItems);
      pool.for_each(kItems, [&](unsigned, std::size_t k) {
        const std::size_t item = (k * 37) % kItems;
        order.finish(
            item, [&](std::size_t own) { used.push_back(own); }, [&] { kept[item] = item + 1; },
            [&](std::size_t other) {
              EXPECT_EQ(kept[other], other + 1);
              used.push_back(other);
            });
      });
      std::vector<std::size_t> want(kItems);
      std::iota(want.begin(), want.end(), std::size_t{0});
      EXPECT_EQ(used, want);
    }
  }
}

}  // namespace
}  // namespace gradwire
