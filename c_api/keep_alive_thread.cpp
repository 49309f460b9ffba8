#include "c_api/keep_alive_thread.h"

#include <chrono>
#include <csignal>
#include <cstddef>

namespace gradwire {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;
constexpr std::chrono::milliseconds kTick{250};

}  // namespace

KeepAliveThread::~KeepAliveThread() {
  if (client_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_all();
  ::pthread_join(thread_, nullptr);
}

void KeepAliveThread::start(StepClient& client, CallerMemory* region) {
  if (client_ != nullptr) return;
  client_ = &client;
  memory_ = region;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  if (::pthread_create(&thread_, &attributes, main_of, this) != 0) client_ = nullptr;
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void* KeepAliveThread::main_of(void* self) {
  auto& thread = *static_cast<KeepAliveThread*>(self);
  const UseMemory memory(thread.memory_);
  std::unique_lock lock(thread.mutex_);
  while (!thread.ended_.wait_for(lock, kTick, [&] { return thread.is_over_; })) {
    try {
      thread.client_->keep_alive();
    } catch (...) {  // no memory: the next tick tries again
    }
  }
  return nullptr;
}

}  // namespace gradwire
