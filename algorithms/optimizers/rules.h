// What the rules of local optimisers share. A rule is plain settings; what it remembers from step to step
// lies in the work space of the thread, and its step 0 begins from nothing: a client keeps none of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compressors/payload.h"

namespace gradwire {

// The first work vector of Scratch that rules use; their callers use those with smaller numbers.
inline constexpr std::size_t kOptimizerVec = 4;

// base^n by multiplications alone: the same bits on every machine, which std::pow does not promise.
inline double integer_power(double base, std::uint32_t n) {
  double power = 1;
  for (; n > 0; n >>= 1, base *= base)
    if ((n & 1) != 0) power *= base;
  return power;
}

}  // namespace gradwire
