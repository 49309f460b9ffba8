#include "parallel/thread_pool.h"

#include <algorithm>
#include <chrono>

#include "parallel/processors.h"

namespace gradwire {
namespace {

// About the time that a sleeping thread needs to wake up.
constexpr auto kLongestSpin = std::chrono::microseconds(50);

constexpr std::uint64_t kOpen = std::uint64_t{1} << 31, kJoined = kOpen - 1, kLoop = std::uint64_t{1} << 32;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(unsigned threads)
    : next_(std::max(1u, threads)), spins_(threads <= usable_processors()) {}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  start_.notify_all();
  for (auto& w : workers_) w.join();
}

template <class IsDone>
bool ThreadPool::spin_until(const IsDone& is_done) const {
  if (is_done()) return true;
  if (!spins_) return false;
  for (const auto until = std::chrono::steady_clock::now() + kLongestSpin;
       std::chrono::steady_clock::now() < until;) {
    pause();
    if (is_done()) return true;
  }
  return false;
}

void ThreadPool::take_items(unsigned thread) {
  try {
    for (unsigned k = 0; k < size(); ++k) {
      std::atomic<std::size_t>& next = next_[(thread + k) % size()].item;
      while (next.load(std::memory_order_relaxed) < items_)
        if (const std::size_t item = next.fetch_add(size(), std::memory_order_relaxed); item < items_)
          (*body_)(thread, item);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    for (NextItem& next : next_) next.item = items_;
  }
}

void ThreadPool::work(unsigned thread) {
  std::uint64_t seen = 0;  // number of a loop
  const auto is_called = [&] { return ending_ || loop_ / kLoop != seen; };
  for (;;) {
    if (!spin_until(is_called)) {
      std::unique_lock lock(mutex_);
      start_.wait(lock, is_called);
    }
    if (ending_) return;
    std::uint64_t loop = loop_;
    while ((loop & kOpen) != 0 && !loop_.compare_exchange_weak(loop, loop + 1)) {
    }
    seen = loop / kLoop;
    if ((loop & kOpen) == 0) continue;
    take_items(thread);
    if (((loop_.fetch_sub(1) - 1) & (kOpen | kJoined)) != 0) continue;
    const std::lock_guard lock(mutex_);
    done_.notify_one();
  }
}

void ThreadPool::for_each(std::size_t items, const std::function<void(unsigned, std::size_t)>& body) {
  if (size() == 1 || items <= 1) {
    for (std::size_t i = 0; i < items; ++i) body(0, i);
    return;
  }
  for (auto t = static_cast<unsigned>(workers_.size()) + 1; t < size(); ++t)
    workers_.emplace_back([this, t] { work(t); });
  body_ = &body;
  items_ = items;
  for (std::size_t t = 0; t < next_.size(); ++t) next_[t].item = t;
  error_ = nullptr;
  {
    const std::lock_guard lock(mutex_);
    loop_ = (loop_ / kLoop + 1) * kLoop + kOpen;
  }
  start_.notify_all();
  take_items(0);
  loop_ &= ~kOpen;
  const auto is_done = [&] { return (loop_ & kJoined) == 0; };
  if (!spin_until(is_done)) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, is_done);
  }
  if (error_) std::rethrow_exception(error_);
}

}  // namespace gradwire
