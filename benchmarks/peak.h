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
  double bytes = 0;  // bytes read or written
};

// Measures multiply-adds in registers, and y += a x, in turns. The latter reads two numbers for each number
// that it writes, like a step of SGD. Its two arrays together have `numbers` numbers, as many as the
// computation that is compared with the peak.
class Peak {
 public:
  Peak(const Kernels<float>& kernels, std::size_t numbers, std::uint32_t turns);

  // Returns the least possible seconds of `work`, for each turn. Computing and moving bytes may overlap, so
  // the longer of the two times counts.
  Series seconds(const PeakWork& work) const;

 private:
  Series for_a_multiply_add_, for_a_byte_;  // seconds for one
};

}  // namespace gradwire::bench
