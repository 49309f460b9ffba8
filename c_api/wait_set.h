// One descriptor for all that a client waits for: its socket, and a cancellation.
#pragma once

#include "fl_client/step_client.h"

namespace gradwire {

class WaitSet {
 public:
  // Throws std::system_error if no descriptors are left.
  WaitSet();
  ~WaitSet();
  WaitSet(const WaitSet&) = delete;
  WaitSet& operator=(const WaitSet&) = delete;

  // The descriptor becomes readable when something of `wait` happens, or after wake().
  int fd() const { return epoll_; }
  void watch(const StepClient::Wait& wait);
  // Any thread and signal handlers may call it. The descriptor stays readable.
  void wake() const;

 private:
  int epoll_, event_;
};

}  // namespace gradwire
