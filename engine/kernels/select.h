// The choice of kernels for this processor. Two runs with the same kernels give the same bits; different
// kernels agree up to rounding.
#pragma once

#include <span>

#include "engine/kernels/kernels.h"

namespace gradwire {

// Returns all kernels in this binary that the processor can run, slowest first: "baseline", "avx2", "avx512"
// on x86-64, "neon" on ARM.
template <class Real>
std::span<const Kernels<Real>* const> available_kernels();

// Returns the fastest available kernels, or those that $GRADWIRE_KERNELS names. Throws std::runtime_error if
// $GRADWIRE_KERNELS names kernels that are not available.
template <class Real>
const Kernels<Real>& best_kernels();

const char* kernels_name();  // name of best_kernels()

}  // namespace gradwire
