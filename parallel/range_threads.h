// Threads that divide the work on long vectors by coordinates.
#pragma once

#include <cstddef>

#include "algorithms/core/communicator.h"

namespace gradwire {

// Returns a ForRanges for the loops of a server algorithm over vectors of length d. It divides long vectors
// among threads; short vectors are not divided. The bits do not depend on the number of threads
// (algorithms/core/vector_ops.h).
ForRanges ranges_of(std::size_t d, unsigned threads);

// Returns a function that calls body(k, k + 1) for each item k, on several threads. Empty for one thread.
ForRanges items_of(unsigned threads);

}  // namespace gradwire
