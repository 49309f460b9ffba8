// Loops over clients on the threads of a pool, if these are faster than one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <vector>

#include "parallel/thread_pool.h"

namespace gradwire {

// The work on clients that is worth waking threads. The bits do not depend on the threads.
inline constexpr double kWorthThreadsSeconds = 100e-6;
// The estimate of the time for a client if nothing is known: then the first loop uses threads.
inline constexpr double kUnknownSeconds = std::numeric_limits<double>::infinity();

class ClientLoop {
 public:
  // `seconds_each` is an estimate for the first loop.
  ClientLoop(ThreadPool& pool, double worth_threads_seconds, double seconds_each)
      : pool_(pool),
        worth_threads_seconds_(worth_threads_seconds),
        seconds_(pool.size()),
        seconds_each_(seconds_each) {}

  // Returns the time of one thread for one client in the last loop, or the estimate before the first one.
  double seconds_each() const { return seconds_each_; }
  bool uses_threads(std::size_t clients) const {
    return pool_.size() > 1 && seconds_each_ * static_cast<double>(clients) >= worth_threads_seconds_;
  }
  // Calls body(thread, item) for each item in [0, items), on several threads if uses_threads(clients).
  // `clients` is the number of clients of all items, at least 1.
  void run(std::size_t items, std::size_t clients, const auto& body) {
    for (Seconds& thread : seconds_) thread.used = 0;
    const auto timed = [&](unsigned thread, const auto& work) {
      const auto started = Clock::now();
      work();
      seconds_[thread].used += std::chrono::duration<double>(Clock::now() - started).count();
    };
    if (uses_threads(clients)) {
      pool_.for_each(items,
                     [&](unsigned thread, std::size_t item) { timed(thread, [&] { body(thread, item); }); });
    } else {
      timed(0, [&] {
        for (std::size_t item = 0; item < items; ++item) body(0u, item);
      });
    }
    double all = 0;
    for (const Seconds& thread : seconds_) all += thread.used;
    seconds_each_ = all / static_cast<double>(clients);
  }

 private:
  using Clock = std::chrono::steady_clock;
  // Two threads never write to the same cache line.
  struct alignas(64) Seconds {
    double used = 0;
  };

  ThreadPool& pool_;
  const double worth_threads_seconds_;
  std::vector<Seconds> seconds_;  // by thread, of the last loop
  double seconds_each_;
};

}  // namespace gradwire
