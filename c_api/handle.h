// A client of the C library.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>

#include "c_api/caller_memory.h"
#include "c_api/caller_oracle.h"
#include "c_api/gradwire.h"
#include "c_api/keep_alive_thread.h"
#include "c_api/wait_set.h"
#include "fl_client/step_client.h"

struct gradwire_client {
  // Throws BadInput for options that cannot be used, and as StepClient.
  gradwire_client(const gradwire_options& options, const gradwire_oracle& oracle,
                  gradwire::CallerMemory* region);

  gradwire_status step(gradwire_wait& next);
  gradwire_status run();
  void keep_alive() { client_->keep_alive(); }
  void cancel();
  void progress(gradwire_progress& to) const;

  // Calls work() with the memory of this client, and keeps the error that it throws as the status and
  // message. Refuses calls from callbacks and after the end.
  gradwire_status guarded(const std::function<gradwire_status()>& work);
  const char* message() const { return message_.data(); }
  gradwire::CallerMemory* region() const { return memory_; }
  bool is_called() const { return is_called_; }

 private:
  void say(const char* why);
  gradwire_status fail(gradwire_status status, const char* why);
  gradwire_status end_with_exception();

  gradwire::CallerMemory* const memory_;  // null if the client uses malloc()
  const std::uint64_t memory_bytes_;
  const bool has_state_;
  const bool has_threads_;
  std::array<char, 512> message_{};
  gradwire_status ended_ = GRADWIRE_OK;  // the status at the end; GRADWIRE_OK before
  bool is_called_ = false;               // true during a call
  gradwire::Calls calls_;
  gradwire::WaitSet waits_;
  std::unique_ptr<gradwire::StepClient> client_;
  gradwire::KeepAliveThread keep_alive_;  // last, because it uses client_
};
