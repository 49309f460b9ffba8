// Which kernels this processor runs. Equal kernels give equal bits; different ones agree to rounding.
#pragma once

#include <span>

#include "engine/kernels/kernels.h"

namespace gradwire {

// All that this binary has and this processor can run, slowest first: "baseline", "avx2", "avx512" on x86-64,
// "neon" on ARM.
template <class Real>
std::span<const Kernels<Real>* const> available_kernels();

// The fastest of them, or the one that $GRADWIRE_KERNELS names. Throws std::runtime_error when
// $GRADWIRE_KERNELS names none of them.
template <class Real>
const Kernels<Real>& best_kernels();

const char* kernels_name();  // of best_kernels()

}  // namespace gradwire
