// The function of a program in C, as an oracle.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "c_api/gradwire.h"
#include "fl_client/stoppable_oracle.h"
#include "gradwire/client.h"

namespace gradwire {

// Thrown if a callback returns something other than 0.
class CallbackFailed : public std::runtime_error {
 public:
  CallbackFailed(const char* callback, std::int32_t result)
      : std::runtime_error("the callback " + std::string(callback) + " returned " + std::to_string(result)) {}
};

// The state that the callbacks of one client share.
struct Calls {
  gradwire_oracle oracle{};
  std::atomic<bool> cancelled{false};
  std::uint32_t round = 0;  // the round of the last local training
  double loss = std::numeric_limits<double>::quiet_NaN();
};

// Makes the oracles that call `calls`, which must outlive them.
OracleFactory factory_of(Calls& calls);

}  // namespace gradwire
