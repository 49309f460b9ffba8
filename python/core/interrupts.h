// Ctrl-C during a run on the main thread of Python.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

namespace gradwire::python {

// While it lives, SIGINT also asks a run to stop. Python's own handler is called as before, so Python raises
// KeyboardInterrupt the next time that it looks: in a Python function of the run, or at its end.
class Interrupts {
 public:
  // Does nothing unless this is the main thread of Python, and Python handles the signal.
  explicit Interrupts(bool is_main_thread);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void watch();

  bool installed_ = false;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;  // guarded by mutex_
  std::thread watcher_;   // a handler of signals cannot request a stop itself
};

}  // namespace gradwire::python
