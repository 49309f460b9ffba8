// The interface between a client and the connection to its server. Simulations implement their own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "proto/wire/codec.h"

namespace gradwire {

class Link {
 public:
  virtual ~Link() = default;
  // Reads the payload of the last frame straight into the targets.
  virtual Status read_payload(std::span<const std::span<std::byte>> targets) = 0;
  virtual Status write(const Encoded& message) = 0;
  virtual Status write(const std::string& frame) = 0;
  // Starts heartbeats at both ends. This end sends something at least once per `interval`.
  virtual void start_heartbeats(std::chrono::milliseconds interval) = 0;
  // Allows messages of the server the time that they take at this rate.
  virtual void expect_rate(std::uint64_t bytes_per_second) { (void)bytes_per_second; }
};

}  // namespace gradwire
