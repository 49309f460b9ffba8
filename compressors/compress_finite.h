// Compression without another pass over the vector for the check that all of its entries are finite.
#pragma once

#include <algorithm>
#include <cstddef>

#include "compressors/compressor.h"
#include "compressors/norms.h"

namespace gradwire {

// Works like compress() for a vector that is known to be finite, such as the one that a composition passes to
// its parts.
template <class Real>
const Payload<Real>& compress_finite(const Compressor& c, Vec<Real>& v, const RngKey& key,
                                     Scratch<Real>& scratch, PayloadBuffer<Real>& to);

// Works like compress() for a vector that is made here: make(first, end) writes the entries v[first, end).
// Each block of entries is checked while it is in the cache, so the check costs little.
template <class Real>
const Payload<Real>& compress_made(const Compressor& c, Vec<Real>& v, const RngKey& key,
                                   Scratch<Real>& scratch, PayloadBuffer<Real>& to, const auto& make) {
  constexpr std::size_t kBlock = 2048;
  bool finite = true;
  for (std::size_t first = 0; first < v.size(); first += kBlock) {
    const std::size_t end = std::min(v.size(), first + kBlock);
    make(first, end);
    finite = all_finite(View<Real>(v).subspan(first, end - first)) && finite;
  }
  return finite ? compress_finite(c, v, key, scratch, to) : to.whole(v);
}

// Computes v = v − shift, and compresses v like compress().
template <class Real>
const Payload<Real>& compress_shifted(const Compressor& c, Vec<Real>& v, View<Real> shift, const RngKey& key,
                                      Scratch<Real>& scratch, PayloadBuffer<Real>& to) {
  return compress_made(c, v, key, scratch, to, [&](std::size_t first, std::size_t end) {
    for (std::size_t j = first; j < end; ++j) v[j] -= shift[j];
  });
}

}  // namespace gradwire
