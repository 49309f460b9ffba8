#pragma once

#include <chrono>

namespace gradwire {

// The clock for LoopHooks::seconds: seconds of a run, including those of earlier processes.
class RunClock {
 public:
  explicit RunClock(double seconds_before) : before_(seconds_before) {}

  double operator()() const {
    return before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }

 private:
  double before_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace gradwire
