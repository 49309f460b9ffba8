// Numbers of a test program that includes count_allocations.h in one of its source files.
#pragma once

#include <cstddef>

namespace gradwire::allocations {

inline thread_local std::size_t count = 0;    // calls of operator new
inline thread_local std::size_t largest = 0;  // bytes of the largest allocation
inline thread_local std::size_t live = 0;     // bytes not yet freed by the thread that allocated them
inline thread_local std::size_t peak = 0;     // highest value of `live`

inline void reset() {
  count = largest = 0;
  peak = live;
}

}  // namespace gradwire::allocations
