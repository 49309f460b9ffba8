// Threads of the caller for a computation. The engine itself has none.
#pragma once

#include <cstddef>
#include <functional>

namespace gradwire {

// Calls body(item) once for each item in [0, items), on at most `threads` threads at a time, the caller's
// included. Returns when all calls have returned, and rethrows the first exception. It must not be called
// from within a body.
struct WorkSharing {
  unsigned threads = 1;
  std::function<void(std::size_t items, const std::function<void(std::size_t item)>& body)> for_each;
};

}  // namespace gradwire
