// A memory budget for arriving payloads, shared by all connections of one server. A payload that does not fit
// waits unread; the oldest comes first. Pure: no I/O.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

namespace gradwire {

class ReceiveBudgetWaiter {
 public:
  virtual ~ReceiveBudgetWaiter() = default;
  virtual void on_room() = 0;  // the memory is reserved now
};

class ReceiveBudget {
 public:
  void limit(std::uint64_t bytes) { budget_ = bytes; }

  // Reserves memory, or returns false and calls on_room() of `waiter` later. Waiters are served in order. A
  // payload larger than the whole budget is served alone, so each waiter gets its turn.
  bool reserve(ReceiveBudgetWaiter& waiter, std::uint64_t bytes) {
    if (queue_.empty() && fits(bytes)) {
      used_ += bytes;
      return true;
    }
    queue_.push_back({&waiter, bytes});
    return false;
  }
  void release(std::uint64_t bytes) { used_ -= bytes; }
  void forget(const ReceiveBudgetWaiter& waiter) {
    std::erase_if(queue_, [&](const Waiting& waiting) { return waiting.waiter == &waiter; });
  }
  // Serves waiters. Must be called some time after release() and forget(), not from inside them.
  void serve_waiters() {
    while (!queue_.empty() && fits(queue_.front().bytes)) {
      const Waiting next = queue_.front();
      queue_.pop_front();
      used_ += next.bytes;
      next.waiter->on_room();
    }
  }
  bool awaited() const { return !queue_.empty(); }
  std::uint64_t used() const { return used_; }

 private:
  struct Waiting {
    ReceiveBudgetWaiter* waiter;
    std::uint64_t bytes;
  };
  bool fits(std::uint64_t bytes) const {
    return used_ == 0 || (bytes <= budget_ && used_ <= budget_ - bytes);
  }

  std::uint64_t budget_ = UINT64_MAX, used_ = 0;
  std::deque<Waiting> queue_;
};

}  // namespace gradwire
