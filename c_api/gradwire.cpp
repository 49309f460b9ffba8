// The functions of gradwire.h. None lets an exception out.
#include "c_api/gradwire.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>

#include "c_api/c_struct.h"
#include "c_api/handle.h"
#include "c_api/plan.h"
#include "gradwire/version.h"

using namespace gradwire;

namespace {

// The bytes up to the last member that the first library needed.
constexpr std::size_t kLeastOptions = offsetof(gradwire_options, server) + sizeof(const char*);
constexpr std::size_t kLeastOracle = offsetof(gradwire_oracle, gradient_f64) + sizeof(void (*)());
constexpr std::size_t kLeastPlan = offsetof(gradwire_plan, algorithm) + sizeof(const char*);

void write_line(const char* text, char* to, std::size_t size) {
  if (to == nullptr || size == 0) return;
  const std::size_t length = std::min(std::strlen(text), size - 1);
  std::memcpy(to, text, length);
  to[length] = '\0';
}

// Makes a client. If the caller has a region for it, the region begins with its CallerMemory.
gradwire_client* make_client(const gradwire_options& options, const gradwire_oracle& oracle) {
  if (options.memory == nullptr) return new gradwire_client(options, oracle, nullptr);
  auto address = reinterpret_cast<std::uintptr_t>(options.memory);
  const std::size_t skip = (alignof(CallerMemory) - address % alignof(CallerMemory)) % alignof(CallerMemory);
  if (options.memory_bytes < skip + sizeof(CallerMemory)) throw std::bad_alloc();
  auto* const place = static_cast<std::byte*>(options.memory) + skip;
  auto* const region = ::new (place)
      CallerMemory(place + sizeof(CallerMemory),
                   static_cast<std::size_t>(options.memory_bytes) - skip - sizeof(CallerMemory));
  const UseMemory memory(region);
  void* const client = region->allocate(sizeof(gradwire_client), alignof(gradwire_client));
  if (client == nullptr) throw std::bad_alloc();
  return ::new (client) gradwire_client(options, oracle, region);
}

}  // namespace

uint32_t gradwire_abi(void) { return GRADWIRE_ABI; }
const char* gradwire_version(void) { return GRADWIRE_VERSION; }

gradwire_status gradwire_create(const gradwire_options* options, const gradwire_oracle* oracle,
                                gradwire_client** out, char* why, size_t why_size) {
  if (out != nullptr) *out = nullptr;
  const auto fail = [&](gradwire_status status, const char* text) {
    write_line(text, why, why_size);
    return status;
  };
  bool has_memory = false, has_state = false;
  const UseMemory memory(nullptr);  // a callback of another client may call this function
  try {
    write_line("", why, why_size);
    if (out == nullptr) throw BadInput("out is NULL");
    const auto own_options = copy_of(options, kLeastOptions, "gradwire_options");
    const auto own_oracle = copy_of(oracle, kLeastOracle, "gradwire_oracle");
    has_memory = own_options.memory != nullptr;
    has_state = own_options.state_dir != nullptr;
    if (!has_memory && own_options.memory_bytes > 0)
      throw BadInput("gradwire_options.memory is NULL, but memory_bytes is not 0");
    *out = make_client(own_options, own_oracle);
    return GRADWIRE_OK;
  } catch (const std::bad_alloc&) {
    return fail(GRADWIRE_E_MEMORY, has_memory ? "gradwire_options.memory is too small for any client; "
                                                "gradwire_memory_needed() says how many bytes a run needs"
                                              : "no memory is left");
  } catch (const BadInput& error) {
    return fail(GRADWIRE_E_ARGUMENT, error.what());
  } catch (const std::exception& error) {
    return fail(has_state ? GRADWIRE_E_STATE : GRADWIRE_E_INTERNAL, error.what());
  } catch (...) {
    return fail(GRADWIRE_E_INTERNAL, "an unknown exception");
  }
}

gradwire_status gradwire_run(gradwire_client* client) {
  if (client == nullptr) return GRADWIRE_E_ARGUMENT;
  return client->guarded([&] { return client->run(); });
}

gradwire_status gradwire_step(gradwire_client* client, gradwire_wait* next) {
  if (client == nullptr || next == nullptr || next->struct_size < sizeof(gradwire_wait))
    return GRADWIRE_E_ARGUMENT;
  return client->guarded([&] {
    gradwire_wait own{};
    const gradwire_status status = client->step(own);
    give(own, next);
    return status;
  });
}

gradwire_status gradwire_keep_alive(gradwire_client* client) {
  if (client == nullptr) return GRADWIRE_E_ARGUMENT;
  if (!client->is_called()) return GRADWIRE_E_STATE;
  try {
    client->keep_alive();
  } catch (...) {  // no memory: the next call tries again
  }
  return GRADWIRE_OK;
}

void gradwire_cancel(gradwire_client* client) {
  if (client != nullptr) client->cancel();
}

const char* gradwire_message(const gradwire_client* client) {
  return client == nullptr ? "" : client->message();
}

gradwire_status gradwire_progress_of(const gradwire_client* client, gradwire_progress* progress) {
  if (client == nullptr || progress == nullptr || progress->struct_size < sizeof(uint32_t))
    return GRADWIRE_E_ARGUMENT;
  gradwire_progress own{};
  client->progress(own);
  give(own, progress);
  return GRADWIRE_OK;
}

gradwire_status gradwire_memory_needed(const gradwire_plan* plan, uint64_t* bytes) {
  if (bytes == nullptr) return GRADWIRE_E_ARGUMENT;
  *bytes = 0;
  const UseMemory memory(nullptr);  // a callback of a client may call this function
  try {
    const auto own = copy_of(plan, kLeastPlan, "gradwire_plan");
    *bytes = memory_needed(own);
    return GRADWIRE_OK;
  } catch (const std::bad_alloc&) {
    return GRADWIRE_E_MEMORY;
  } catch (const BadInput&) {
    return GRADWIRE_E_ARGUMENT;
  } catch (...) {
    return GRADWIRE_E_INTERNAL;
  }
}

void gradwire_destroy(gradwire_client* client) {
  if (client == nullptr || client->is_called()) return;
  CallerMemory* const region = client->region();
  const UseMemory memory(region);
  if (region == nullptr) return delete client;
  client->~gradwire_client();
  region->release(client);
  region->~CallerMemory();
}
