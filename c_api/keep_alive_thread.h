// Keeps the connection of a client alive while its callbacks compute.
#pragma once

#include <condition_variable>
#include <mutex>
#include <pthread.h>

#include "c_api/caller_memory.h"
#include "fl_client/step_client.h"

namespace gradwire {

class KeepAliveThread {
 public:
  KeepAliveThread() = default;
  ~KeepAliveThread();
  KeepAliveThread(const KeepAliveThread&) = delete;
  KeepAliveThread& operator=(const KeepAliveThread&) = delete;

  // Starts the thread, with a small stack and without signals. Does nothing if it runs, or if the system has
  // no thread: the client then works without.
  void start(StepClient& client, CallerMemory* region);

 private:
  static void* main_of(void* self);

  StepClient* client_ = nullptr;  // set once the thread runs
  CallerMemory* memory_ = nullptr;
  pthread_t thread_{};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;
};

}  // namespace gradwire
