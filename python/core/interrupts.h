// Ctrl-C during a run on the main thread of Python.
#pragma once

#include <stop_token>
#include <thread>

#include "python/core/callbacks.h"

namespace gradwire::python {

// While it lives, SIGINT is noted in addition to what Python's own handler does.
class Interrupts {
 public:
  // Does nothing unless this is the main thread of Python, and Python handles the signal.
  explicit Interrupts(bool is_main_thread);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool are_noted() const { return are_noted_; }
  // Returns whether the signal came since the last call. Any thread may call it.
  static bool take();

 private:
  bool are_noted_ = false, is_installed_ = false;
};

// Ctrl-C during a run on the main thread of Python. The run's threads call look() before each gradient.
class InterruptsOfRun {
 public:
  InterruptsOfRun(bool is_main_thread, Trouble& trouble) : noted_(is_main_thread), trouble_(trouble) {}

  bool are_noted() const { return noted_.are_noted(); }
  std::stop_token token() const { return stop_.get_token(); }
  void stop() { stop_.request_stop(); }
  // On the main thread, lets Python handle a signal that came. If its handler raises, which is kept, asks the
  // run to stop.
  void look();

 private:
  Interrupts noted_;
  Trouble& trouble_;
  std::stop_source stop_;
  const std::thread::id main_ = std::this_thread::get_id();
};

// Ctrl-C during a sweep: asks it to stop, whatever Python's handler does at its end.
class InterruptsOfSweep {
 public:
  explicit InterruptsOfSweep(bool is_main_thread);

  std::stop_token token() const { return stop_.get_token(); }
  void stop() { stop_.request_stop(); }

 private:
  Interrupts noted_;
  std::stop_source stop_;
  std::jthread watcher_;  // a handler of signals cannot request a stop itself
};

}  // namespace gradwire::python
