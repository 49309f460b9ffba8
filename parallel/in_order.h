// Work that threads finish in any order and use in a fixed order.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace gradwire {

// The items 0, 1, ... of a loop. Several threads finish them; each item is used after the item before it, and
// only one item at a time.
class InOrder {
 public:
  // Starts a new loop. REQUIRES: no thread is in finish().
  void begin(std::size_t items) {
    arrived_.assign(items, 0);
    next_ = 0;
    is_busy_ = false;
  }
  // Ends the work on one item. Calls use(item) if it is the item's turn. Otherwise calls keep(), which makes
  // the result outlive this call, and the thread that uses the item before it calls use_kept(item).
  void finish(std::size_t item, const auto& use, const auto& keep, const auto& use_kept) {
    std::unique_lock lock(mutex_);
    if (takes_turn(item)) {
      lock.unlock();
      use(item);
    } else {
      lock.unlock();
      keep();
      lock.lock();
      arrived_[item] = 1;
      if (!takes_turn(item)) return;
      lock.unlock();
      use_kept(item);
    }
    for (;;) {
      lock.lock();
      if (++next_ == arrived_.size() || arrived_[next_] == 0) break;
      item = next_;
      lock.unlock();
      use_kept(item);
    }
    is_busy_ = false;
  }

 private:
  bool takes_turn(std::size_t item) {
    if (is_busy_ || item != next_) return false;
    return is_busy_ = true;
  }

  std::mutex mutex_;
  std::vector<char> arrived_;  // by item; kept results
  std::size_t next_ = 0;
  bool is_busy_ = false;  // a thread uses the item next_
};

}  // namespace gradwire
