// A thread that performs handshakes of filters, so that signatures do not delay the rounds.
//
// Contract:
// 1. submit() takes ownership of a step and its filter. From then on only the worker uses them.
// 2. The worker feeds the bytes to the filter and calls the step's `done`, on the worker's thread. `done`
//    passes the step to the thread that owns the connection. A connection has one step at a time, so its
//    bytes stay in order.
// 3. At most `most` steps wait. If there is no room, submit() returns false and leaves the step unchanged.
// 4. A step whose `wanted` is false is returned without work.
// 5. The destructor waits for the step in progress. It destroys waiting steps without returning them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "proto/security/stream_filter.h"

namespace gradwire {

struct HandshakeStep {
  std::unique_ptr<StreamFilter> filter;
  std::vector<std::byte> arrived;                   // bytes from the peer
  std::shared_ptr<const std::atomic<bool>> wanted;  // false once the connection has closed
  std::function<void(HandshakeStep)> done;          // empty inside the call
  Status status = Unit{};                           // the result of StreamFilter::feed()
};

class HandshakeWorker {
 public:
  explicit HandshakeWorker(std::size_t most);
  ~HandshakeWorker();
  HandshakeWorker(const HandshakeWorker&) = delete;
  HandshakeWorker& operator=(const HandshakeWorker&) = delete;

  bool submit(HandshakeStep& step);

 private:
  void work();

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<HandshakeStep> waiting_;
  bool ending_ = false;
  std::thread thread_;  // declared last because it uses the members above
};

}  // namespace gradwire
