#include "parallel/thread_pool.h"

#include <exception>

namespace gradwire {

ThreadPool::ThreadPool(unsigned threads) {
  for (unsigned t = 1; t < threads; ++t) workers_.emplace_back([this, t] { work(t); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  start_.notify_all();
  for (auto& w : workers_) w.join();
}

void ThreadPool::take_items(unsigned thread) {
  try {
    for (std::size_t i = next_.fetch_add(1); i < items_; i = next_.fetch_add(1)) (*body_)(thread, i);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    next_ = items_;
  }
}

void ThreadPool::work(unsigned thread) {
  std::size_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return ending_ || generation_ != seen; });
      if (ending_) return;
      seen = generation_;
    }
    take_items(thread);
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) done_.notify_one();
  }
}

void ThreadPool::for_each(std::size_t items, const std::function<void(unsigned, std::size_t)>& body) {
  if (workers_.empty() || items <= 1) {
    for (std::size_t i = 0; i < items; ++i) body(0, i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    items_ = items;
    next_ = 0;
    error_ = nullptr;
    running_ = static_cast<unsigned>(workers_.size());
    ++generation_;
  }
  start_.notify_all();
  take_items(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return running_ == 0; });
  if (error_) std::rethrow_exception(error_);
}

}  // namespace gradwire
