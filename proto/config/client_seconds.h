// The speeds of the clients of a simulation: clients.seconds of the experiment file.
#pragma once

#include <cstdint>
#include <string_view>

namespace gradwire {

// What one request takes a client on the virtual clock.
struct ClientSeconds {
  enum class Kind : std::uint8_t { kEqual, kSqrt, kLinear, kLogNormal };
  Kind kind = Kind::kEqual;
  double scale = 1;  // seconds
  double sigma = 0;  // of kLogNormal: standard deviation of the logarithm

  // Of client i = 0, 1, ... for the request of a ticket; equal on all machines.
  double of(std::uint64_t seed, std::uint32_t i, std::uint64_t ticket) const;
};

// Reads "2.5", "sqrt", "linear", "lognormal:0.5", "0.1*linear"; "" is "1". Throws
// ConfigError(clients.seconds).
ClientSeconds parse_client_seconds(std::string_view text);

}  // namespace gradwire
