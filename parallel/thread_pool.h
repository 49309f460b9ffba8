#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gradwire {

// A fixed set of threads that share the items of one loop at a time; the caller is one of them.
class ThreadPool {
 public:
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned size() const { return static_cast<unsigned>(workers_.size()) + 1; }

  // Calls body(thread, item) once for each item in [0, items), with thread < size(), in any order. Returns
  // when all are done. Rethrows the first exception of the body.
  void for_each(std::size_t items, const std::function<void(unsigned thread, std::size_t item)>& body);

 private:
  void work(unsigned thread);
  void take_items(unsigned thread);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  std::size_t generation_ = 0;  // number of the loop in progress
  unsigned running_ = 0;
  bool ending_ = false;
  const std::function<void(unsigned, std::size_t)>* body_ = nullptr;
  std::size_t items_ = 0;
  std::atomic<std::size_t> next_{0};
  std::exception_ptr error_;
};

}  // namespace gradwire
