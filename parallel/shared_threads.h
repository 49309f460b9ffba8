// Threads that an oracle may use for one gradient.
#pragma once

#include "gradwire/oracle.h"

namespace gradwire {

// Returns a pool of this many threads, the caller's included. The pool starts at its first use, and ends with
// the last copy of the result. Two callers must not use it at the same time.
WorkSharing shared_threads(unsigned threads);

}  // namespace gradwire
