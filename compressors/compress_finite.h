#pragma once

#include "compressors/compressor.h"

namespace gradwire {

// compress() of a vector that is known to be finite, as what a composition passes on to its parts is.
template <class Real>
const Payload<Real>& compress_finite(const Compressor& c, Vec<Real>& v, const StreamKey& key,
                                     Scratch<Real>& scratch, Store<Real>& to);

}  // namespace gradwire
