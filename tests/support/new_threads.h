#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <thread>

namespace gradwire {

// Counts the threads that this process starts from now on.
class NewThreads {
 public:
  NewThreads() {
    std::thread([] {}).join();  // the thread sanitizer starts its own thread with the first one
    // The kernel lists joined threads for a moment longer.
    do {
      before_ = threads();
      std::this_thread::sleep_for(kMoment);
    } while (threads() != before_);
  }
  std::ptrdiff_t count() const { return threads() - before_; }

 private:
  static constexpr auto kMoment = std::chrono::milliseconds(20);

  static std::ptrdiff_t threads() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  }

  std::ptrdiff_t before_;
};

}  // namespace gradwire
