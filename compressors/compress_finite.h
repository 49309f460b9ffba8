#pragma once

#include "compressors/compressor.h"

namespace gradwire {

// Works like compress() for a vector that is known to be finite, such as the one that a composition passes to
// its parts.
template <class Real>
const Payload<Real>& compress_finite(const Compressor& c, Vec<Real>& v, const RngKey& key,
                                     Scratch<Real>& scratch, PayloadBuffer<Real>& to);

}  // namespace gradwire
