// Replies of the clients of load_clients.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "benchmarks/load_clients.h"

namespace gradwire::bench {

class LoadReplies {
 public:
  virtual ~LoadReplies() = default;
  // Returns the bytes of a Reply frame. One of its numbers is NaN if `nan` is true.
  virtual std::string reply(std::uint32_t client, std::uint64_t request_id, std::uint32_t round,
                            bool nan) = 0;
};

std::unique_ptr<LoadReplies> load_replies_of(const LoadOptions& options);

}  // namespace gradwire::bench
