// One thread that takes filters through their handshakes, so that signatures do not hold up the rounds.
//
// Contract:
// 1. A step has one owner: submit() takes its filter, and from then on the worker alone uses it.
// 2. The worker feeds the bytes and hands the step to its `done`, on the worker's thread; `done` passes it on
//    to the thread that owns the connection. A connection has one step at a time, so its bytes keep their
//    order.
// 3. At most `most` steps wait. submit() leaves a step as it is and returns false if there is no room.
// 4. A step whose `wanted` has become false is handed back without the work.
// 5. The destructor waits for the step in progress; steps that still wait are destroyed, and not handed back.
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
  std::vector<std::byte> arrived;                   // from the peer
  std::shared_ptr<const std::atomic<bool>> wanted;  // false once the connection has closed
  std::function<void(HandshakeStep)> done;          // empty when it is called
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
  std::thread thread_;  // last: it uses the members above
};

}  // namespace gradwire
