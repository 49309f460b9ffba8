// Peak performance of one core, measured in the same run as the figures that are compared with it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned.h"
#include "benchmarks/harness.h"
#include "engine/kernels/kernels.h"

namespace gradwire::bench {

// Least work of a computation, in fp32.
struct PeakWork {
  double multiply_adds = 0;
  double bytes = 0;  // read or written once
};

// Measures multiply-adds in registers, and y += a x, in turns. The latter reads two numbers for each one that
// it writes, as a step of SGD does. Its two arrays have `numbers` numbers together, as many as the compared
// computation uses.
class Peak {
 public:
  Peak(const Kernels<float>& kernels, std::size_t numbers, std::uint32_t turns);

  // Returns the least possible seconds of `work`, turn by turn. This is the slower of its two parts, as if
  // they overlapped.
  Series seconds(const PeakWork& work) const;

 private:
  Series for_a_multiply_add_, for_a_byte_;  // seconds
};

}  // namespace gradwire::bench
