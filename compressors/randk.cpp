#include "compressors/randk.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "compressors/gather.h"

namespace gradwire {

CompressorConstants RandK::constants(std::size_t d) const {
  const double ratio = static_cast<double>(d) / k.count;
  return scaled ? CompressorConstants::of_unbiased(ratio - 1, k.count)
                : CompressorConstants::of_contractive(1 / ratio, k.count);
}

namespace {

// Both functions draw until they have k different indices below d, so they give the same subset for the same
// k.

void draw_sorted(RngStream& stream, std::uint32_t k, std::uint32_t d, std::vector<std::uint32_t>& out) {
  out.clear();
  while (out.size() < k) {
    while (out.size() < k) out.push_back(stream.below(d));
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  }
}

void mark(RngStream& stream, std::uint32_t k, std::uint32_t d, std::uint32_t* marks) {
  for (std::uint32_t t = 0; t < k;) {
    const std::uint32_t j = stream.below(d);
    const std::uint32_t bit = std::uint32_t{1} << (j % 32);
    t += (marks[j / 32] & bit) == 0;
    marks[j / 32] |= bit;
  }
}

// Lists the marked indices below d, or those not marked. `out` has room for two more.
void list_marks(const std::uint32_t* marks, std::uint32_t d, bool complement, std::uint32_t* out) {
  const std::size_t words = (std::size_t{d} + 63) / 64;
  std::size_t n = 0;
  for (std::size_t w = 0; w < words; ++w) {
    std::uint64_t word = marks[2 * w] | std::uint64_t{marks[2 * w + 1]} << 32;
    if (complement) word = ~word;
    if (w + 1 == words && d % 64 != 0) word &= (std::uint64_t{1} << (d % 64)) - 1;
    const auto base = static_cast<std::uint32_t>(w * 64);
    // Write two entries without a branch. If no bit is left, the next entry overwrites this one, or it falls
    // into the extra room at the end.
    for (int unrolled = 0; unrolled < 2; ++unrolled) {
      out[n] = base + static_cast<std::uint32_t>(std::countr_zero(word));
      n += word != 0;
      word &= word - 1;
    }
    for (; word != 0; word &= word - 1) out[n++] = base + static_cast<std::uint32_t>(std::countr_zero(word));
  }
}

}  // namespace

void draw_subset(const RngKey& key, std::uint32_t k, std::uint32_t d, std::vector<std::uint32_t>& out) {
  if (k > d) throw std::logic_error("draw_subset: k is larger than d");
  RngStream stream(key);
  if (k <= d / 4096) return draw_sorted(stream, k, d, out);
  // Mark the smaller of the subset and its complement: fewer than two draws an entry on average. The marks
  // lie in `out`, after the subset and the room for list_marks.
  const bool complement = k > d / 2;
  const std::size_t begin = std::size_t{k} + 2;
  out.assign(begin + 2 * ((std::size_t{d} + 63) / 64), 0);
  mark(stream, complement ? d - k : k, d, out.data() + begin);
  list_marks(out.data() + begin, d, complement, out.data());
  out.resize(k);
}

template <class Real>
const Payload<Real>& RandK::operator()(Vec<Real>& v, const RngKey& key, Scratch<Real>&,
                                       PayloadBuffer<Real>& to) const {
  draw_subset(key, k.count, static_cast<std::uint32_t>(v.size()), to.indices());
  gather<Real>(v, factor<Real>(v.size()), to);
  to.set_seeded(key);
  return to.view();
}

bool RandK::redraw(Shape shape, std::size_t count, std::uint32_t dim, const RngKey& key,
                   std::vector<std::uint32_t>& indices, std::uint32_t&) const {
  if (shape != Shape::kSparse || count != k.count) return false;
  draw_subset(key, k.count, dim, indices);
  return true;
}

template const Payload<float>& RandK::operator()(Vec<float>&, const RngKey&, Scratch<float>&,
                                                 PayloadBuffer<float>&) const;
template const Payload<double>& RandK::operator()(Vec<double>&, const RngKey&, Scratch<double>&,
                                                  PayloadBuffer<double>&) const;

}  // namespace gradwire
