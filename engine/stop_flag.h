// Lets another thread stop a computation of this one: oracles look at a flag between two blocks of samples.
#pragma once

#include <atomic>
#include <stdexcept>

namespace gradwire {

// Thrown out of a computation whose flag is set. Its results are left half done.
class ComputationStopped : public std::runtime_error {
 public:
  ComputationStopped() : std::runtime_error("the computation was stopped") {}
};

class StopFlag {
 public:
  // While it lives, computations of this thread look at `flag`.
  explicit StopFlag(const std::atomic<bool>& flag) : before_(flag_) { flag_ = &flag; }
  ~StopFlag() { flag_ = before_; }
  StopFlag(const StopFlag&) = delete;
  StopFlag& operator=(const StopFlag&) = delete;

  // To be called now and then by whatever takes long. Throws ComputationStopped.
  static void check() {
    if (flag_ != nullptr && flag_->load(std::memory_order_relaxed)) throw ComputationStopped();
  }

 private:
  static inline constinit thread_local const std::atomic<bool>* flag_ = nullptr;  // null: nobody can stop it
  const std::atomic<bool>* const before_;
};

}  // namespace gradwire
