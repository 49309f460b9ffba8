// Compressors that read only a few entries of a vector. The key alone determines which, so the other entries
// need not be computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compressors/compressor.h"

namespace gradwire {

struct DrawnSupport {
  bool is_range = false;  // `count` cyclic neighbours that start at `first`; otherwise `indices`
  std::uint32_t first = 0, count = 0;
  std::vector<std::uint32_t> indices;  // ascending
};

// Returns true if draw_support() works for `c`: for randk, randseqk, and a rounding of their values.
bool draws_support(const Compressor& c);

// Sets `to` to the entries that compress() reads in a vector of length d. Returns false, with `to` unchanged,
// if compress() reads all entries.
bool draw_support(const Compressor& c, const RngKey& key, std::size_t d, DrawnSupport& to);

// Works like compress() for a vector whose entries are set only at `support`, drawn with this key. The other
// entries may have any value. If one of the set entries is not finite, the payload is the dense vector of the
// set entries, with zeros elsewhere.
template <class Real>
const Payload<Real>& compress_at(const Compressor& c, const DrawnSupport& support, Vec<Real>& v,
                                 const RngKey& key, Scratch<Real>& scratch, PayloadBuffer<Real>& to);

}  // namespace gradwire
