#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gradwire {

// A fixed set of threads that share the items of one loop at a time; the caller is one of them. They start at
// the first loop. After a loop they wait for the next one without sleeping, for some microseconds, unless the
// processors are fewer than the threads.
class ThreadPool {
 public:
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned size() const { return static_cast<unsigned>(next_.size()); }

  // Calls body(thread, item) once for each item in [0, items), with thread < size(). Returns when all are
  // done. Rethrows the first exception of the body. Thread t takes the items t, t + size(), ... in this
  // order, so in each loop of equal length it mostly gets the same items, whose data is in its cache. A
  // thread that has finished its items takes those of the others.
  void for_each(std::size_t items, const std::function<void(unsigned thread, std::size_t item)>& body);

 private:
  // The next item of one thread. Two threads never write to the same cache line.
  struct alignas(64) NextItem {
    std::atomic<std::size_t> item{0};
  };

  void work(unsigned thread);
  void take_items(unsigned thread);
  template <class IsDone>
  bool spin_until(const IsDone& is_done) const;

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  // The number of the last loop, kOpen while threads may join it, and the number of threads that joined. The
  // caller does not wait for a thread that wakes up after the last item was taken.
  std::atomic<std::uint64_t> loop_ = 0;
  std::atomic<bool> ending_ = false;
  const std::function<void(unsigned, std::size_t)>* body_ = nullptr;
  std::size_t items_ = 0;
  std::vector<NextItem> next_;  // by thread
  std::exception_ptr error_;
  const bool spins_;
};

}  // namespace gradwire
