#include "compressors/rankk.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "compressors/norms.h"
#include "compressors/symmetric_eigen.h"

namespace gradwire {
namespace {

constexpr std::size_t kBlock = 256;

// A matrix of shape (rows, cols) seen from one of its two sides. In X(i, t), i runs along this side and t
// along the other.
template <class Real>
struct Side {
  const Real* data;
  std::size_t length, across;  // length of this side, of the other side
  std::size_t along, step;     // distance of X(i, t) from X(i + 1, t), and from X(i, t + 1)
  double scale;                // brings the largest entry near 1
};

// Calls body(lo, n) for blocks of the other side. block[i * kBlock + t] holds X(i, lo + t) * scale for t < n,
// and 0 for larger t.
template <class Real, class Body>
void each_block(const Side<Real>& x, double* block, Body body) {
  for (std::size_t lo = 0; lo < x.across; lo += kBlock) {
    const std::size_t n = std::min(kBlock, x.across - lo);
    for (std::size_t i = 0; i < x.length; ++i) {
      const Real* const from = x.data + i * x.along + lo * x.step;
      double* const to = block + i * kBlock;
      for (std::size_t t = 0; t < n; ++t) to[t] = static_cast<double>(from[t * x.step]) * x.scale;
      std::fill(to + n, to + kBlock, 0.0);
    }
    body(lo, n);
  }
}

double dot(const double* a, const double* b) {
  constexpr std::size_t kLanes = 16;
  std::array<double, kLanes> lanes{};
  for (std::size_t t = 0; t < kBlock; t += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += a[t + l] * b[t + l];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Computes the matrix X X^T of the side, shape (length, length).
template <class Real>
void gram(const Side<Real>& x, double* block, double* out) {
  std::fill_n(out, x.length * x.length, 0.0);
  each_block(x, block, [&](std::size_t, std::size_t) {
    for (std::size_t i = 0; i < x.length; ++i)
      for (std::size_t j = 0; j <= i; ++j)
        out[i * x.length + j] += dot(block + i * kBlock, block + j * kBlock);
  });
  for (std::size_t i = 0; i < x.length; ++i)
    for (std::size_t j = 0; j < i; ++j) out[j * x.length + i] = out[i * x.length + j];
}

// Calls put(l, t, value) with value = (U^T X)(l, t) for the first `rank` rows u of the basis.
template <class Real, class Put>
void project(const Side<Real>& x, const double* basis, std::size_t rank, double* block, Put put) {
  each_block(x, block, [&](std::size_t lo, std::size_t n) {
    for (std::size_t l = 0; l < rank; ++l) {
      std::array<double, kBlock> sum{};
      for (std::size_t i = 0; i < x.length; ++i) {
        const double u = basis[l * x.length + i];
        for (std::size_t t = 0; t < kBlock; ++t) sum[t] += u * block[i * kBlock + t];
      }
      for (std::size_t t = 0; t < n; ++t) put(l, lo + t, sum[t]);
    }
  });
}

}  // namespace

template <class Real>
const Payload<Real>& RankK::operator()(Vec<Real>& v, const RngKey&, Scratch<Real>& scratch,
                                       PayloadBuffer<Real>& to) const {
  const std::size_t m = rows.count, cols = v.size() / m, rank = k;
  const Real largest = largest_magnitude<Real>(v);
  const int exponent = largest == 0 ? 0 : std::clamp(std::ilogb(static_cast<double>(largest)), -1000, 1000);
  const bool by_rows = m <= cols;
  Side<Real> x{v.data(), m, cols, cols, 1, std::ldexp(1.0, -exponent)};
  if (!by_rows) x = {v.data(), cols, m, 1, cols, x.scale};
  scratch.doubles.resize(x.length * (x.length + kBlock));
  double* const basis = scratch.doubles.data();
  double* const block = basis + x.length * x.length;
  gram(x, block, basis);
  symmetric_eigenvectors(std::span(basis, x.length * x.length), x.length, scratch.more_doubles);
  // The best approximation of X is U (U^T X), where the columns of U are the first eigenvectors. U is the
  // left factor if the side is that of the rows, else the right one.
  to.values().resize(rank * (m + cols));
  Real* const left = to.values().data();
  Real* const right = left + rank * m;
  // Each factor gets half of the exponent, so that neither overflows. Near the largest numbers of Real, the
  // product is made slightly too small, so that it does not overflow either.
  const bool near_end = largest > std::numeric_limits<Real>::max() / 2;
  const double shrink = near_end ? 1 - 64 * static_cast<double>(std::numeric_limits<Real>::epsilon()) : 1;
  for (std::size_t l = 0; l < rank; ++l)
    for (std::size_t i = 0; i < x.length; ++i)
      (by_rows ? left[i * rank + l] : right[l * cols + i]) =
          static_cast<Real>(std::ldexp(basis[l * x.length + i], exponent / 2));
  project(x, basis, rank, block, [&](std::size_t l, std::size_t t, double value) {
    (by_rows ? right[l * cols + t] : left[t * rank + l]) =
        static_cast<Real>(std::ldexp(value * shrink, exponent - exponent / 2));
  });
  return to.low_rank(static_cast<std::uint32_t>(v.size()), rows.count);
}

template const Payload<float>& RankK::operator()(Vec<float>&, const RngKey&, Scratch<float>&,
                                                 PayloadBuffer<float>&) const;
template const Payload<double>& RankK::operator()(Vec<double>&, const RngKey&, Scratch<double>&,
                                                  PayloadBuffer<double>&) const;

}  // namespace gradwire
