#include "compressors/support.h"

#include <algorithm>
#include <cmath>

#include "compressors/compress_finite.h"

namespace gradwire {
namespace {

// Returns the compressor that draws the support of the payloads of `c`, or nullptr if there is none.
const Compressor* drawer_of(const Compressor& c) {
  if (std::holds_alternative<RandK>(c) || std::holds_alternative<RandSeqK>(c)) return &c;
  const auto* over = std::get_if<Composed>(static_cast<const Compressor::Variant*>(&c));
  return over != nullptr ? drawer_of(over->parts[1]) : nullptr;
}

// Calls f(first, end) for runs of entries.
template <class F>
void for_runs(const DrawnSupport& support, std::size_t d, F&& f) {
  if (!support.is_range) {
    for (const std::size_t j : support.indices) f(j, j + 1);
    return;
  }
  const std::size_t head = std::min<std::size_t>(support.count, d - support.first);
  f(support.first, support.first + head);
  f(std::size_t{0}, support.count - head);
}

}  // namespace

bool draws_support(const Compressor& c) { return drawer_of(c) != nullptr; }

bool draw_support(const Compressor& c, const RngKey& key, std::size_t d, DrawnSupport& to) {
  const Compressor* const drawer = drawer_of(c);
  if (drawer == nullptr) return false;
  const auto dim = static_cast<std::uint32_t>(d);
  to.is_range = std::holds_alternative<RandSeqK>(*drawer);
  to.count = to.is_range ? std::get<RandSeqK>(*drawer).k.count : std::get<RandK>(*drawer).k.count;
  return redraw_support(*drawer, to.is_range ? Shape::kRange : Shape::kSparse, to.count, dim, key, to.indices,
                        to.first);
}

template <class Real>
const Payload<Real>& compress_at(const Compressor& c, const DrawnSupport& support, Vec<Real>& v,
                                 const RngKey& key, Scratch<Real>& scratch, PayloadBuffer<Real>& to) {
  bool finite = true;
  for_runs(support, v.size(), [&](std::size_t first, std::size_t end) {
    for (std::size_t j = first; j < end; ++j) finite = finite && std::isfinite(v[j]);
  });
  if (finite) return compress_finite(c, v, key, scratch, to);
  Vec<Real> whole(v.size());
  for_runs(support, v.size(), [&](std::size_t first, std::size_t end) {
    std::copy(v.begin() + first, v.begin() + end, whole.begin() + first);
  });
  return to.whole(whole);
}

template const Payload<float>& compress_at(const Compressor&, const DrawnSupport&, Vec<float>&, const RngKey&,
                                           Scratch<float>&, PayloadBuffer<float>&);
template const Payload<double>& compress_at(const Compressor&, const DrawnSupport&, Vec<double>&,
                                            const RngKey&, Scratch<double>&, PayloadBuffer<double>&);

}  // namespace gradwire
