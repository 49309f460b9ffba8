// The choice of kernels for this processor. Two runs with the same kernels give the same bits; different
// kernels agree up to rounding.
#pragma once

#include <cstdint>
#include <span>

#include "engine/kernels/kernels.h"

namespace gradwire {

// The portable kernels fuse no operations and give the same bits on every architecture.
enum class KernelSet : std::uint8_t { kBest, kPortable };

// Returns all kernels in this binary that the processor can run, slowest first: "portable", then "avx2" and
// "avx512" on x86-64, or "neon" on ARM.
template <class Real>
std::span<const Kernels<Real>* const> available_kernels();

// Returns the portable kernels, or the fastest available ones. $GRADWIRE_KERNELS may name others than the
// fastest; earlier releases call the portable ones "baseline". Throws std::runtime_error if it names kernels
// that are not available.
template <class Real>
const Kernels<Real>& kernels_of(KernelSet set);

const char* kernels_name(KernelSet set);

}  // namespace gradwire
