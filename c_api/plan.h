// The memory that a client of the C library needs.
#pragma once

#include <cstdint>

#include "c_api/gradwire.h"

namespace gradwire {

// Returns the bytes of options.memory for a run of this plan, without TLS and with names of usual length.
// Joins a run of a few requests with smaller and larger regions. Throws BadInput if there is no such run.
std::uint64_t memory_needed(const gradwire_plan& plan);

}  // namespace gradwire
