#include "python/core/interrupts.h"

#include <atomic>
#include <chrono>
#include <csignal>

namespace gradwire::python {
namespace {

constexpr std::chrono::milliseconds kLook{20};

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);
struct sigaction earlier {};

void on_interrupt(int signal) {
  interrupted = true;
  earlier.sa_handler(signal);
}

}  // namespace

Interrupts::Interrupts(bool is_main_thread) {
  if (!is_main_thread) return;
  struct sigaction now {};
  if (sigaction(SIGINT, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0) return;
  // A run within a function of another run leaves the signal to that one.
  if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN || now.sa_handler == on_interrupt) return;
  earlier = now;
  interrupted = false;
  struct sigaction mine = now;
  mine.sa_handler = on_interrupt;
  installed_ = sigaction(SIGINT, &mine, nullptr) == 0;
  if (installed_) watcher_ = std::thread([this] { watch(); });
}

Interrupts::~Interrupts() {
  if (!installed_) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_all();
  watcher_.join();
  struct sigaction now {};
  // Python code may have set another handler meanwhile.
  if (sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler == on_interrupt) sigaction(SIGINT, &earlier, nullptr);
}

void Interrupts::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kLook, [this] { return is_over_; }))
    if (interrupted.exchange(false)) stop_.request_stop();
}

}  // namespace gradwire::python
