#include "fl_server/net/handshake_worker.h"

#include <new>
#include <utility>

#ifdef __linux__
#include <sys/resource.h>
#endif

namespace gradwire {
namespace {

// Lowers the priority of this thread, so that rounds get most of a processor that they share with handshakes.
void lower_priority() {
#ifdef __linux__  // elsewhere the priority applies to all threads
  constexpr int kNicer = 5;
  ::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNicer);
#endif
}

void feed(HandshakeStep& step) {
  if (!step.wanted->load(std::memory_order_relaxed)) return;
  try {
    step.status = step.filter->feed(step.arrived);
  } catch (const std::bad_alloc&) {
    step.status = Error{"out of memory for its handshake"};
  }
}

}  // namespace

HandshakeWorker::HandshakeWorker(std::size_t most) : most_(most), thread_([this] { work(); }) {}

HandshakeWorker::~HandshakeWorker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool HandshakeWorker::submit(HandshakeStep& step) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= most_) return false;
    waiting_.push_back(std::move(step));
  }
  changed_.notify_one();
  return true;
}

void HandshakeWorker::work() {
  lower_priority();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    HandshakeStep step = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    feed(step);
    const auto done = std::exchange(step.done, nullptr);
    try {
      done(std::move(step));
    } catch (const std::bad_alloc&) {  // the connection ends at its time limit
    }
    lock.lock();
  }
}

}  // namespace gradwire
