// Threads that divide the work on long vectors by coordinates.
#pragma once

#include <cstddef>

#include "algorithms/core/communicator.h"

namespace gradwire {

// Returns the division of a server algorithm's sums over vectors of length d. Short vectors are not divided.
// The bits do not depend on the number of threads (algorithms/core/vector_ops.h).
ForRanges ranges_of(std::size_t d, unsigned threads);

}  // namespace gradwire
