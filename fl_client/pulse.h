// Shows a watchdog that a client still moves: before each wait, the client says how long it may take. While
// it computes, or reads its data, it may take any time.
#pragma once

#include <atomic>
#include <chrono>

namespace gradwire {

class Pulse {
 public:
  using Clock = std::chrono::steady_clock;

  void wait(std::chrono::milliseconds at_most, Clock::time_point now = Clock::now()) {
    due_ = (now + at_most).time_since_epoch();
  }
  void work() { due_ = Clock::duration::max(); }
  bool is_alive(Clock::time_point now = Clock::now()) const { return now.time_since_epoch() <= due_.load(); }

 private:
  std::atomic<Clock::duration> due_ = Clock::duration::max();
};

}  // namespace gradwire
