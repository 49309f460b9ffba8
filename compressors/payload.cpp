#include "compressors/payload.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace gradwire {

std::uint32_t index_bits(std::uint64_t d) {
  return d <= 1 ? 0 : static_cast<std::uint32_t>(std::bit_width(d - 1));
}

template <class Real>
double wire_bits(const Payload<Real>& p) {
  const double count = static_cast<double>(p.values.size());
  const double value_bits =
      p.packing == Packing::kNatural ? (sizeof(Real) == 4 ? 9 : 12) : 8.0 * sizeof(Real);
  double support_bits = 0;
  if (!p.seeded && p.shape == Shape::kSparse) {
    // Packed indices, or a bitmap where that is smaller.
    support_bits = std::min(count * index_bits(p.dim), static_cast<double>(p.dim));
  } else if (!p.seeded && p.shape == Shape::kRange) {
    support_bits = index_bits(p.dim);
  }
  return count * value_bits + support_bits;
}

template <class Real>
double paper_bits(const Payload<Real>& p) {
  return static_cast<double>(p.values.size()) * (p.packing == Packing::kNatural ? 9 : 32);
}

namespace {

template <class Real>
void add_range(const Payload<Real>& p, Real scale, Out<Real> out, std::size_t lo, std::size_t hi) {
  const std::size_t first = p.first, count = p.values.size();
  const std::size_t head = std::min<std::size_t>(count, p.dim - first);  // before the wrap
  for (std::size_t j = std::max(lo, first), end = std::min(hi, first + head); j < end; ++j)
    out[j] += scale * p.values[j - first];
  for (std::size_t j = lo, end = std::min(hi, count - head); j < end; ++j)
    out[j] += scale * p.values[head + j];
}

}  // namespace

template <class Real>
void add_decoded(const Payload<Real>& p, Real scale, Out<Real> out, std::size_t lo, std::size_t hi) {
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
  }
}

template <class Real>
const Payload<Real>& Store<Real>::whole(Vec<Real>& v) {
  values_.swap(v);
  v.resize(values_.size());
  return view_ = Payload<Real>::dense(values_);
}

template <class Real>
const Payload<Real>& Store<Real>::sparse(std::uint32_t dim) {
  view_ = {};
  view_.shape = Shape::kSparse;
  view_.dim = dim;
  view_.indices = indices_;
  view_.values = values_;
  return view_;
}

template <class Real>
const Payload<Real>& Store<Real>::range(std::uint32_t dim, std::uint32_t first) {
  view_ = {};
  view_.shape = Shape::kRange;
  view_.dim = dim;
  view_.first = first;
  view_.values = values_;
  return view_;
}

template double wire_bits(const Payload<float>&);
template double wire_bits(const Payload<double>&);
template double paper_bits(const Payload<float>&);
template double paper_bits(const Payload<double>&);
template void add_decoded(const Payload<float>&, float, Out<float>, std::size_t, std::size_t);
template void add_decoded(const Payload<double>&, double, Out<double>, std::size_t, std::size_t);
template class Store<float>;
template class Store<double>;

}  // namespace gradwire
