#include "c_api/handle.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <poll.h>
#include <system_error>
#include <utility>

#include "c_api/c_struct.h"
#include "fl_client/client.h"
#include "fl_client/own_oracle.h"

using namespace gradwire;

namespace {

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

std::int32_t level_of(LogLevel level) {
  return level == LogLevel::kInfo      ? GRADWIRE_INFO
         : level == LogLevel::kWarning ? GRADWIRE_WARNING
                                       : GRADWIRE_ERROR;
}

ClientSettings settings_for(const gradwire_options& from, Calls& calls) {
  constexpr std::uint32_t kKnownFlags = GRADWIRE_NO_THREADS | GRADWIRE_INSECURE;
  if ((from.flags & ~kKnownFlags) != 0)
    throw BadInput("gradwire_options.flags has a flag that this library does not know");
  if (from.server == nullptr) throw BadInput("gradwire_options.server is NULL; give HOST:PORT");
  if (from.id != nullptr && *from.id == '\0')
    throw BadInput("gradwire_options.id is empty; give a name, or NULL for a new one");
  ClientOptions options;
  options.server = from.server;
  options.name = text_of(from.id);
  options.state = text_of(from.state_dir);
  options.identity = text_of(from.identity_dir);
  options.token = text_of(from.token);
  options.ca_file = text_of(from.ca_file);
  options.insecure = (from.flags & GRADWIRE_INSECURE) != 0;
  options.part = from.part;
  options.parts = from.parts;
  options.threads = 1;
  if (from.give_up_after_ms > 0) options.give_up_after = std::chrono::milliseconds(from.give_up_after_ms);
  Log log;
  if (from.log != nullptr)
    log = [tell = from.log, user = from.log_user](const LogLine& line) {
      tell(user, level_of(line.level), line.text.c_str());
    };
  ClientSettings settings = settings_of(options, std::move(log));
  settings.oracle = factory_of(calls);
  return settings;
}

StepClient::Connect connect_of(const gradwire_options& options) {
  if (options.connect == nullptr) return {};
  return [connect = options.connect, user = options.connect_user](const std::string& server) {
    return connect(user, server.c_str());
  };
}

void check(const gradwire_oracle& oracle) {
  if (oracle.flags != 0) throw BadInput("gradwire_oracle.flags has a flag that this library does not know");
  if (oracle.gradient_f32 == nullptr && oracle.gradient_f64 == nullptr)
    throw BadInput(
        "gradwire_oracle has neither gradient_f32 nor gradient_f64; give that of the run's precision");
  if (oracle.sample_count == 0) throw BadInput("gradwire_oracle.sample_count is 0; it must be at least 1");
  if (oracle.test_count > 0 && oracle.score == nullptr)
    throw BadInput("gradwire_oracle.test_count is not 0, but score is NULL");
}

}  // namespace

gradwire_client::gradwire_client(const gradwire_options& options, const gradwire_oracle& oracle,
                                 CallerMemory* region)
    : memory_(region),
      memory_bytes_(options.memory_bytes),
      has_state_(options.state_dir != nullptr),
      has_threads_((options.flags & GRADWIRE_NO_THREADS) == 0) {
  check(oracle);
  calls_.oracle = oracle;
  client_ = std::make_unique<StepClient>(settings_for(options, calls_), connect_of(options));
}

gradwire_status gradwire_client::step(gradwire_wait& next) {
  if (has_threads_) keep_alive_.start(*client_, memory_);
  next = {sizeof next, waits_.fd(), GRADWIRE_READABLE, 0};
  if (calls_.cancelled) return fail(GRADWIRE_E_CANCELLED, "the client was cancelled");
  StepClient::Wait wait;
  if (!client_->step(wait)) {
    if (calls_.cancelled) return fail(GRADWIRE_E_CANCELLED, "the client was cancelled");
    return ended_ = GRADWIRE_DONE;
  }
  waits_.watch(wait);
  constexpr std::int64_t kMost = 24 * 3600 * 1000;
  next.timeout_ms = static_cast<std::int32_t>(std::min<std::int64_t>(wait.at_most.count(), kMost));
  return GRADWIRE_OK;
}

gradwire_status gradwire_client::run() {
  for (gradwire_wait next{};;) {
    if (const gradwire_status status = step(next); status != GRADWIRE_OK) return status;
    pollfd ready{next.fd, POLLIN, 0};
    if (next.timeout_ms > 0) ::poll(&ready, 1, next.timeout_ms);
  }
}

void gradwire_client::cancel() {
  calls_.cancelled = true;
  waits_.wake();
}

void gradwire_client::progress(gradwire_progress& to) const {
  const StepClient::Progress now = client_->progress();
  to.stage = static_cast<std::uint32_t>(now.stage);
  to.round = calls_.round;
  to.answered = now.answered;
  to.late = now.late;
  to.bytes_up = now.bytes_up;
  to.bytes_down = now.bytes_down;
  to.memory_peak = memory_ != nullptr ? memory_->peak() : 0;
  to.loss = calls_.loss;
}

void gradwire_client::say(const char* why) {
  const std::size_t size = std::min(std::strlen(why), message_.size() - 1);
  std::copy_n(why, size, message_.begin());
  message_[size] = '\0';
}

gradwire_status gradwire_client::fail(gradwire_status status, const char* why) {
  say(why);
  return ended_ = status;
}

gradwire_status gradwire_client::guarded(const std::function<gradwire_status()>& work) {
  if (is_called_) {
    say("a callback may call gradwire_keep_alive() and gradwire_cancel() of its client, and nothing else");
    return GRADWIRE_E_STATE;
  }
  if (ended_ != GRADWIRE_OK) return ended_ == GRADWIRE_DONE ? GRADWIRE_DONE : GRADWIRE_E_STATE;
  struct Called {
    explicit Called(bool& is_called) : flag(is_called) { flag = true; }
    ~Called() { flag = false; }
    bool& flag;
  } const called(is_called_);
  const UseMemory memory(memory_);
  try {
    return work();
  } catch (...) {
    return end_with_exception();
  }
}

gradwire_status gradwire_client::end_with_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    if (memory_ == nullptr) return fail(GRADWIRE_E_MEMORY, "no memory is left");
    std::array<char, 200> text;
    std::snprintf(
        text.data(), text.size(),
        "options.memory is too small: of its %llu bytes, %llu were used and %llu more are needed at once; "
        "gradwire_memory_needed() says how many a run needs",
        static_cast<unsigned long long>(memory_bytes_), static_cast<unsigned long long>(memory_->peak()),
        static_cast<unsigned long long>(memory_->lacking()));
    return fail(GRADWIRE_E_MEMORY, text.data());
  } catch (const CallbackFailed& error) {
    return fail(GRADWIRE_E_CALLBACK, error.what());
  } catch (const UnfitClient& error) {
    return fail(GRADWIRE_E_ARGUMENT, error.what());
  } catch (const ClientRefused& error) {
    return fail(GRADWIRE_E_REFUSED, error.what());
  } catch (const ClientError& error) {
    return fail(GRADWIRE_E_UNREACHABLE, error.what());
  } catch (const BadInput& error) {
    return fail(GRADWIRE_E_ARGUMENT, error.what());
  } catch (const std::runtime_error& error) {  // the folder of the state, if there is one
    return fail(has_state_ ? GRADWIRE_E_STATE : GRADWIRE_E_INTERNAL, error.what());
  } catch (const std::exception& error) {
    return fail(GRADWIRE_E_INTERNAL, error.what());
  } catch (...) {
    return fail(GRADWIRE_E_INTERNAL, "an unknown exception");
  }
}
