#include "compressors/payload.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <stdexcept>

namespace gradwire {

std::uint32_t index_bits(std::uint64_t d) {
  return d <= 1 ? 0 : static_cast<std::uint32_t>(std::bit_width(d - 1));
}

std::uint32_t triangle_side(std::uint64_t entries) {
  // Rounding may make the root too large.
  auto m = static_cast<std::uint64_t>(std::sqrt(2.0 * static_cast<double>(entries)));
  while (m * (m + 1) / 2 > entries) --m;
  return m * (m + 1) / 2 == entries ? static_cast<std::uint32_t>(m) : 0;
}

std::uint32_t packed_bits(Packing packing, std::uint32_t levels, std::size_t real_bytes) {
  switch (packing) {
    case Packing::kNatural: return real_bytes == 4 ? 9 : 12;
    case Packing::kLevels:
    case Packing::kDithered: return 1 + index_bits(std::uint64_t{levels} + 1);
    case Packing::kSigns: return 1;
    case Packing::kPlain:
    case Packing::kTernary: break;
  }
  throw std::logic_error("packed_bits: this packing has no fixed number of bits per value");
}

namespace {

// Returns the bits of the values, including the unit. If `paper`, a ternary value counts log2 3 bits, as in
// papers.
double value_bits(Packing packing, std::uint32_t levels, double count, std::size_t real_bytes, bool paper) {
  if (count == 0) return 0;
  const double one = 8.0 * static_cast<double>(real_bytes);
  if (packing == Packing::kPlain) return count * one;
  if (packing == Packing::kTernary) return one + (paper ? count * std::log2(3.0) : 8 * std::ceil(count / 5));
  return count * packed_bits(packing, levels, real_bytes) + (sends_unit(packing) ? one : 0);
}

}  // namespace

template <class Real>
double wire_bits(const Payload<Real>& p) {
  const double count = static_cast<double>(p.values.size());
  double support_bits = 0;
  if (p.key == nullptr && p.shape == Shape::kSparse) {
    // Packed indices, or a bitmap if that is smaller.
    support_bits = std::min(count * index_bits(p.dim), static_cast<double>(p.dim));
  } else if (p.key == nullptr && p.shape == Shape::kRange) {
    support_bits = index_bits(p.dim);
  }
  return value_bits(p.packing, p.levels, count, sizeof(Real), false) + support_bits +
         (p.next != nullptr ? wire_bits(*p.next) : 0);
}

template <class Real>
double paper_bits(const Payload<Real>& p) {
  return value_bits(p.packing, p.levels, static_cast<double>(p.values.size()), 4, true) +
         (p.next != nullptr ? paper_bits(*p.next) : 0);
}

namespace {

template <class Real>
void add_range(const Payload<Real>& p, Real scale, Out<Real> out, std::size_t lo, std::size_t hi) {
  const std::size_t first = p.first, count = p.values.size();
  const std::size_t head = std::min<std::size_t>(count, p.dim - first);  // before the wrap-around
  for (std::size_t j = std::max(lo, first), end = std::min(hi, first + head); j < end; ++j)
    out[j] += scale * p.values[j - first];
  for (std::size_t j = lo, end = std::min(hi, count - head); j < end; ++j)
    out[j] += scale * p.values[head + j];
}

// Adds coordinates lo .. hi of scale * L R. The order of the sum over k is the same for any range.
template <class Real>
void add_low_rank(const Payload<Real>& p, Real scale, Out<Real> out, std::size_t lo, std::size_t hi) {
  constexpr std::size_t kBlock = 256;
  const std::size_t rows = p.rows, cols = p.dim / rows, k = p.values.size() / (rows + cols);
  const Real* const left = p.values.data();
  const Real* const right = left + rows * k;
  std::array<Real, kBlock> sum;
  for (std::size_t j = lo; j < hi;) {
    const std::size_t row = j / cols, col = j % cols, n = std::min({kBlock, cols - col, hi - j});
    std::fill_n(sum.begin(), n, Real(0));
    for (std::size_t l = 0; l < k; ++l) {
      const Real factor = left[row * k + l];
      for (std::size_t c = 0; c < n; ++c) sum[c] += factor * right[l * cols + col + c];
    }
    for (std::size_t c = 0; c < n; ++c) out[j + c] += scale * sum[c];
    j += n;
  }
}

// Adds coordinates lo .. hi of scale * sum_l lambda_l u_l u_l^T.
template <class Real>
void add_symmetric(const Payload<Real>& p, Real scale, Out<Real> out, std::size_t lo, std::size_t hi) {
  constexpr std::size_t kBlock = 256;
  const std::size_t m = triangle_side(p.dim), r = p.values.size() / (m + 1);
  const Real* const lambda = p.values.data();
  const Real* const vectors = lambda + r;
  std::array<Real, kBlock> sum;
  std::size_t row = 0, begin = 0;  // the row of the triangle, and its first entry
  for (std::size_t j = lo; j < hi;) {
    while (j >= begin + (m - row)) begin += m - row++;
    const std::size_t col = row + (j - begin), n = std::min({kBlock, m - col, hi - j});
    std::fill_n(sum.begin(), n, Real(0));
    for (std::size_t l = 0; l < r; ++l) {
      const Real* const u = vectors + l * m;
      const Real factor = lambda[l] * u[row];
      for (std::size_t c = 0; c < n; ++c) sum[c] += factor * u[col + c];
    }
    for (std::size_t c = 0; c < n; ++c) out[j + c] += scale * sum[c];
    j += n;
  }
}

}  // namespace

template <class Real>
void add_link(const Payload<Real>& p, Real scale, Out<Real> out, std::size_t lo, std::size_t hi) {
  assert(lo <= hi && hi <= out.size() && (p.shape == Shape::kNothing || out.size() == p.dim));
  switch (p.shape) {
    case Shape::kNothing: return;
    case Shape::kDense:
      for (std::size_t j = lo; j < hi; ++j) out[j] += scale * p.values[j];
      return;
    case Shape::kSparse: {
      const auto& at = p.indices;
      std::size_t k =
          lo == 0 ? 0 : static_cast<std::size_t>(std::lower_bound(at.begin(), at.end(), lo) - at.begin());
      for (; k < at.size() && at[k] < hi; ++k) out[at[k]] += scale * p.values[k];
      return;
    }
    case Shape::kRange: return add_range(p, scale, out, lo, hi);
    case Shape::kLowRank: return add_low_rank(p, scale, out, lo, hi);
    case Shape::kSymmetric: return add_symmetric(p, scale, out, lo, hi);
  }
}

template <class Real>
void add_decoded(const Payload<Real>& p, Real scale, Out<Real> out, std::size_t lo, std::size_t hi) {
  add_link(p, scale, out, lo, hi);
  if (p.next != nullptr) add_link(*p.next, scale, out, lo, hi);
}

template <class Real>
const Payload<Real>& PayloadBuffer<Real>::whole(Vec<Real>& v) {
  values_.swap(v);
  v.resize(values_.size());
  return view_ = Payload<Real>::dense(values_);
}

template <class Real>
const Payload<Real>& PayloadBuffer<Real>::sparse(std::uint32_t dim) {
  view_ = {};
  view_.shape = Shape::kSparse;
  view_.dim = dim;
  view_.indices = indices_;
  view_.values = values_;
  return view_;
}

template <class Real>
const Payload<Real>& PayloadBuffer<Real>::range(std::uint32_t dim, std::uint32_t first) {
  view_ = {};
  view_.shape = Shape::kRange;
  view_.dim = dim;
  view_.first = first;
  view_.values = values_;
  return view_;
}

template <class Real>
const Payload<Real>& PayloadBuffer<Real>::low_rank(std::uint32_t dim, std::uint32_t rows) {
  view_ = {};
  view_.shape = Shape::kLowRank;
  view_.dim = dim;
  view_.rows = rows;
  view_.values = values_;
  return view_;
}

template <class Real>
const Payload<Real>& PayloadBuffer<Real>::symmetric(std::uint32_t dim) {
  view_ = {};
  view_.shape = Shape::kSymmetric;
  view_.dim = dim;
  view_.values = values_;
  return view_;
}

template <class Real>
const Payload<Real>& PayloadBuffer<Real>::nothing(std::uint32_t dim) {
  values_.clear();
  view_ = {};
  view_.dim = dim;
  return view_;
}

template <class Real>
void PayloadBuffer<Real>::rescale(Real c) {
  const Real old = view_.unit;
  switch (view_.packing) {
    case Packing::kPlain: {
      // Low-rank and symmetric matrices are stored as factors: scale only the first (or the eigenvalues).
      const std::size_t count =
          view_.shape == Shape::kLowRank
              ? values_.size() / (view_.rows + view_.dim / view_.rows) * std::size_t{view_.rows}
          : view_.shape == Shape::kSymmetric ? values_.size() / (triangle_side(view_.dim) + std::size_t{1})
                                             : values_.size();
      for (std::size_t j = 0; j < count; ++j) values_[j] *= c;
      return;
    }
    case Packing::kTernary:
    case Packing::kLevels:
    case Packing::kSigns:
      view_.unit = old * c;
      for (Real& v : values_) v = old == 0 ? v : std::round(v / old) * view_.unit;
      return;
    case Packing::kNatural:
    case Packing::kDithered:
      view_.unit = old * c;
      for (Real& v : values_) v = old == 0 ? v : v / old * view_.unit;
      return;
  }
}

template <class Real>
PayloadBuffer<Real>& PayloadBuffer<Real>::second() {
  if (second_ == nullptr) second_ = std::make_unique<PayloadBuffer>();
  return *second_;
}

template <class Real>
const Payload<Real>& PayloadBuffer<Real>::chain() {
  view_.next = &second().view_;
  return view_;
}

template double wire_bits(const Payload<float>&);
template double wire_bits(const Payload<double>&);
template double paper_bits(const Payload<float>&);
template double paper_bits(const Payload<double>&);
template void add_link(const Payload<float>&, float, Out<float>, std::size_t, std::size_t);
template void add_link(const Payload<double>&, double, Out<double>, std::size_t, std::size_t);
template void add_decoded(const Payload<float>&, float, Out<float>, std::size_t, std::size_t);
template void add_decoded(const Payload<double>&, double, Out<double>, std::size_t, std::size_t);
template class PayloadBuffer<float>;
template class PayloadBuffer<double>;

}  // namespace gradwire
