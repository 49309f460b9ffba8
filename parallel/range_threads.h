// Threads that share the work on long vectors by coordinates.
#pragma once

#include <cstddef>

#include "algorithms/core/communicator.h"

namespace gradwire {

// How the sums of a server algorithm over vectors of length d are split; short vectors are not. The bits do
// not depend on the number of threads (algorithms/core/vector_ops.h).
ForRanges ranges_of(std::size_t d, unsigned threads);

}  // namespace gradwire
