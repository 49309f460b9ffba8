#include "compressors/rankr.h"

#include <cstdint>
#include <span>

#include "compressors/norms.h"
#include "compressors/symmetric_eigen.h"

namespace gradwire {

template <class Real>
const Payload<Real>& RankR::operator()(Vec<Real>& v, const RngKey&, Scratch<Real>& scratch,
                                       PayloadBuffer<Real>& to) const {
  const std::size_t m = triangle_side(v.size()), rank = r;
  const Real largest = largest_magnitude<Real>(v);
  int exponent = largest == 0 ? 0 : std::clamp(std::ilogb(static_cast<double>(largest)), -1000, 1000);
  exponent -= exponent % 2;  // each of two equal factors gets half of it
  const double scale = std::ldexp(1.0, -exponent);
  scratch.doubles.resize(m * m + m);
  double* const matrix = scratch.doubles.data();
  const std::span<double> eigenvalues(matrix + m * m, m);
  for (std::size_t a = 0, at = 0; a < m; ++a)
    for (std::size_t b = a; b < m; ++b, ++at)
      matrix[a * m + b] = matrix[b * m + a] = static_cast<double>(v[at]) * scale;
  symmetric_eigenvectors(std::span(matrix, m * m), m, scratch.more_doubles, eigenvalues);
  to.values().resize(rank * (m + 1));
  Real* const values = to.values().data();
  // The eigenvalues descend: the next largest in magnitude is at one of the two ends.
  std::size_t front = 0, back = m;
  for (std::size_t l = 0; l < rank; ++l) {
    const bool from_front = eigenvalues[front] >= -eigenvalues[back - 1];
    const std::size_t e = from_front ? front++ : --back;
    values[l] = static_cast<Real>(eigenvalues[e]);
    for (std::size_t a = 0; a < m; ++a)
      values[rank + l * m + a] = static_cast<Real>(std::ldexp(matrix[e * m + a], exponent / 2));
  }
  return to.symmetric(static_cast<std::uint32_t>(v.size()));
}

template const Payload<float>& RankR::operator()(Vec<float>&, const RngKey&, Scratch<float>&,
                                                 PayloadBuffer<float>&) const;
template const Payload<double>& RankR::operator()(Vec<double>&, const RngKey&, Scratch<double>&,
                                                  PayloadBuffer<double>&) const;

}  // namespace gradwire
