// Common code of the rules of local optimizers. A rule only holds settings. Its state between steps is in the
// thread's work space and starts at zero in step 0 of a round, so clients need not store it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compressors/payload.h"

namespace gradwire {

// The first work vector of Scratch that rules use. Callers of rules use vectors with smaller numbers.
inline constexpr std::size_t kOptimizerVec = 4;

// Returns base^n, computed by multiplications only. Unlike std::pow, it gives the same bits on every machine.
inline double integer_power(double base, std::uint32_t n) {
  double power = 1;
  for (; n > 0; n >>= 1, base *= base)
    if ((n & 1) != 0) power *= base;
  return power;
}

}  // namespace gradwire
