#include "rounds/norm_limit.h"

#include <cmath>

#include "compressors/norms.h"

namespace gradwire {
namespace {

template <class Real>
double length(View<Real> v) {
  return norm<Real>(v, 2).over(1);
}

// Returns the number of values to scale so that the whole payload is scaled. In a product, these are the
// first factor.
template <class Real>
std::size_t first_factor(const Payload<Real>& p) {
  if (p.shape == Shape::kLowRank) return p.values.size() / (p.rows + p.dim / p.rows) * std::size_t{p.rows};
  if (p.shape == Shape::kSymmetric) return p.values.size() / (triangle_side(p.dim) + std::size_t{1});
  return p.values.size();
}

template <class Real>
double norm_of_link(const Payload<Real>& p) {
  if (p.values.empty()) return 0;
  const std::size_t count = first_factor(p);
  const View<Real> first = p.values.first(count), rest = p.values.subspan(count);
  if (p.shape == Shape::kLowRank) return length(first) * length(rest);
  if (p.shape != Shape::kSymmetric) return length(first);
  double sum = 0;
  const std::size_t m = triangle_side(p.dim);
  for (std::size_t l = 0; l < count; ++l) {
    const double u = length(rest.subspan(l * m, m));
    sum += std::abs(static_cast<double>(first[l])) * u * u;
  }
  return sum;
}

}  // namespace

template <class Real>
double norm_of(std::span<const Payload<Real>> parts) {
  if (parts.size() == 1 && parts[0].next == nullptr) return norm_of_link(parts[0]);
  double squares = 0;
  for (const Payload<Real>& part : parts) {
    double norm = 0;
    for (const Payload<Real>* p = &part; p != nullptr; p = p->next) norm += norm_of_link(*p);
    squares += norm * norm;
  }
  return std::sqrt(squares);
}
template double norm_of(std::span<const Payload<float>>);
template double norm_of(std::span<const Payload<double>>);

template <class Real>
HalvedParts<Real>::HalvedParts(std::span<const Payload<Real>> parts, int times)
    : parts_(parts.begin(), parts.end()) {
  for (Payload<Real>& part : parts_) {
    copy_payload(part, arena_, [&](Payload<Real>& link, Out<Real> values) {
      for (Real& v : values.first(first_factor(link))) v = std::ldexp(v, -times);
      // Powers of two stay powers of two, so only other packings need a new unit.
      if (link.packing != Packing::kPlain && link.packing != Packing::kNatural)
        link.unit = std::ldexp(link.unit, -times);
    });
  }
}
template class HalvedParts<float>;
template class HalvedParts<double>;

int halvings(double norm, double limit) {
  int times = 0;
  for (; norm > limit; norm /= 2) ++times;
  return times;
}

}  // namespace gradwire
