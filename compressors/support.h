// Compressors that look at few entries of a vector, which follow from the key alone: whoever computes the
// vector need not compute the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compressors/compressor.h"

namespace gradwire {

struct DrawnSupport {
  bool is_range = false;  // `count` cyclic neighbours from `first` on; else `indices`
  std::uint32_t first = 0, count = 0;
  std::vector<std::uint32_t> indices;  // ascending
};

// Whether draw_support() can say for `c` which entries it looks at: randk, randseqk, and a rounding of their
// values.
bool draws_support(const Compressor& c);

// The entries that compress() looks at in a vector of length d. False, and `to` is as it was: it looks at
// all.
bool draw_support(const Compressor& c, const RngKey& key, std::size_t d, DrawnSupport& to);

// compress() of a vector that has its values at `support` alone, drawn with this key; the others may be
// anything. If one of them is not finite, the payload is the whole v with zeros elsewhere.
template <class Real>
const Payload<Real>& compress_at(const Compressor& c, const DrawnSupport& support, Vec<Real>& v,
                                 const RngKey& key, Scratch<Real>& scratch, PayloadBuffer<Real>& to);

}  // namespace gradwire
