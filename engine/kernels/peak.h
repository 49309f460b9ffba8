// The peak rate of a core: multiply-adds in registers, without a load. Benchmarks compare the other kernels
// with it.
#pragma once

#include "engine/kernels/vec.h"

namespace gradwire::GRADWIRE_ISA {

// The number of chains, enough to hide the latency of a multiply-add on all tested processors.
inline constexpr int kPeakChains = 12;

// Applies v -> v a + b to kPeakChains registers, `rounds` times. All lanes start at 1. Returns their sum.
template <class T>
T multiply_adds(Index rounds, T a, T b) {
  using V = Vec<T, kNative<T>>;
  const V by = splat<V>(a), plus = splat<V>(b);
  V chain[kPeakChains];
#pragma GCC unroll 16
  for (V& v : chain) v = splat<V>(T(1));
  for (Index r = 0; r < rounds; ++r) {
#pragma GCC unroll 16
    for (V& v : chain) {
      v = fma(v, by, plus);
      // Keeps the chain in its register, so that the compiler merges neither the equal chains nor the rounds.
#if defined(__x86_64__)
      asm("" : "+v"(v));
#elif defined(__ARM_NEON)
      asm("" : "+w"(v));
#endif
    }
  }
  T total = 0;
  for (const V& v : chain) total += sum<T, kNative<T>>(v);
  return total;
}

}  // namespace gradwire::GRADWIRE_ISA
