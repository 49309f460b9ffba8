#include "compressors/toplek.h"

#include <algorithm>
#include <cmath>

#include "compressors/gather.h"
#include "compressors/norms.h"
#include "compressors/topk.h"

namespace gradwire {

template <class Real>
const Payload<Real>& TopLEK::operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                                        PayloadBuffer<Real>& to) const {
  std::vector<std::uint32_t>& indices = to.indices();
  select_largest<Real>(v, k.count, scratch, indices);
  if (k.count == v.size()) return gather<Real>(v, 1, to);
  std::sort(indices.begin(), indices.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Real x = std::abs(v[a]), y = std::abs(v[b]);
    return x > y || (x == y && a < b);
  });
  // Divide by the norm, so that no square overflows or vanishes.
  const ScaledNorm length = norm<Real>(v, 2);
  const double target = static_cast<double>(k.count) / static_cast<double>(v.size());
  to.values().reserve(k.count);
  const double u = RngStream(key).uniform();
  double share = 0;  // a_j
  std::size_t kept = 0;
  while (kept < indices.size() && length.value > 0) {
    const double x = std::ldexp(static_cast<double>(v[indices[kept]]), -length.exponent) / length.value;
    const double next = share + x * x;
    if (next > target) {
      kept += u * (next - share) < target - share ? 1 : 0;
      break;
    }
    share = next;
    ++kept;
  }
  indices.resize(kept);
  std::sort(indices.begin(), indices.end());
  return gather<Real>(v, 1, to);
}

template const Payload<float>& TopLEK::operator()(Vec<float>&, const RngKey&, Scratch<float>&,
                                                  PayloadBuffer<float>&) const;
template const Payload<double>& TopLEK::operator()(Vec<double>&, const RngKey&, Scratch<double>&,
                                                   PayloadBuffer<double>&) const;

}  // namespace gradwire
