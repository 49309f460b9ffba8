#include "python/core/interrupts.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>

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
  if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) return;
  are_noted_ = true;
  if (now.sa_handler == on_interrupt) return;  // a run within a function of another run
  earlier = now;
  interrupted = false;
  struct sigaction mine = now;
  mine.sa_handler = on_interrupt;
  is_installed_ = sigaction(SIGINT, &mine, nullptr) == 0;
}

Interrupts::~Interrupts() {
  struct sigaction now {};
  // Python code may have set another handler meanwhile.
  if (is_installed_ && sigaction(SIGINT, nullptr, &now) == 0 && now.sa_handler == on_interrupt)
    sigaction(SIGINT, &earlier, nullptr);
}

bool Interrupts::take() { return interrupted.load(std::memory_order_relaxed) && interrupted.exchange(false); }

void InterruptsOfRun::look() {
  if (!interrupted.load(std::memory_order_relaxed) || std::this_thread::get_id() != main_) return;
  const Gil gil;
  if (!Interrupts::take() || PyErr_CheckSignals() == 0) return;
  py::error_already_set raised;
  trouble_.keep(raised);
  stop_.request_stop();
}

InterruptsOfSweep::InterruptsOfSweep(bool is_main_thread) : noted_(is_main_thread) {
  if (!noted_.are_noted()) return;
  watcher_ = std::jthread([this](const std::stop_token& is_over) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    for (std::condition_variable_any ended; !is_over.stop_requested();) {
      ended.wait_for(lock, is_over, kLook, [] { return false; });
      if (Interrupts::take()) stop_.request_stop();
    }
  });
}

}  // namespace gradwire::python
