#pragma once

#include "compressors/payload.h"

namespace gradwire {

// Fills to.values() with scale * v at to.indices(), and publishes the sparse payload.
template <class Real>
const Payload<Real>& gather(View<Real> v, Real scale, PayloadBuffer<Real>& to) {
  const std::vector<std::uint32_t>& indices = to.indices();
  Vec<Real>& values = to.values();
  values.resize(indices.size());
  for (std::size_t k = 0; k < indices.size(); ++k) values[k] = scale * v[indices[k]];
  return to.sparse(static_cast<std::uint32_t>(v.size()));
}
template <class Real>
const Payload<Real>& gather(const Vec<Real>& v, Real scale, PayloadBuffer<Real>& to) {
  return gather(View<Real>(v), scale, to);
}

}  // namespace gradwire
