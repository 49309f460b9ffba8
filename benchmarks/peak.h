// What one core can do at most, measured in the same run as what is held against it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned.h"
#include "benchmarks/harness.h"
#include "engine/kernels/kernels.h"

namespace gradwire::bench {

// What a computation cannot do without, in fp32.
struct PeakWork {
  double multiply_adds = 0;
  double bytes = 0;  // read or written once
};

// Multiply-adds in registers, and y += a x, which reads two numbers for each that it writes, as a step of SGD
// does; in turns. Its two arrays have `numbers` numbers together: what is held against it works on as many.
class Peak {
 public:
  Peak(const Kernels<float>& kernels, std::size_t numbers, std::uint32_t turns);

  // The least seconds that `work` could take, turn by turn: the slower of its two parts, as if they
  // overlapped.
  Series seconds(const PeakWork& work) const;

 private:
  Series for_a_multiply_add_, for_a_byte_;  // seconds
};

}  // namespace gradwire::bench
