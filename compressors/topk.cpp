#include "compressors/topk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "compressors/gather.h"

namespace gradwire {
namespace {

// Returns the bits of |x| as a signed number, which is never negative. Every SIMD instruction set can compare
// signed numbers. The results have the order of |x|, and a NaN is larger than infinity.
template <class Real>
auto magnitude(Real x) {
  using Bits = MagnitudeBits<Real>;
  return static_cast<Bits>(std::bit_cast<Bits>(x) & std::numeric_limits<Bits>::max());
}

template <class Real>
void select_one(View<Real> v, std::vector<std::uint32_t>& out) {
  auto best = magnitude(v[0]);
  for (const Real x : v) best = std::max(best, magnitude(x));
  std::uint32_t at = 0;
  while (magnitude(v[at]) != best) ++at;
  out.assign(1, at);
}

constexpr std::size_t kFew = 32;

// Selects the k largest for k <= kFew. Keeps the k largest so far in descending order. Of equal ones, keeps
// the first.
template <class Real>
void select_few(View<Real> v, std::size_t k, std::vector<std::uint32_t>& out) {
  std::array<MagnitudeBits<Real>, kFew> best;
  std::array<std::uint32_t, kFew> place;
  std::size_t kept = 0;
  for (std::size_t j = 0; j < v.size(); ++j) {
    const auto m = magnitude(v[j]);
    if (kept == k && m <= best[k - 1]) continue;
    std::size_t at = kept < k ? kept++ : k - 1;
    for (; at > 0 && best[at - 1] < m; --at) {
      best[at] = best[at - 1];
      place[at] = place[at - 1];
    }
    best[at] = m;
    place[at] = static_cast<std::uint32_t>(j);
  }
  out.assign(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(k));
  std::sort(out.begin(), out.end());
}

template <class Bits>
std::size_t count_at_least(std::span<const Bits> m, Bits t) {
  constexpr std::size_t kBlock = std::size_t{1} << 20;  // short enough that no lane overflows
  std::size_t total = 0;
  for (std::size_t lo = 0; lo < m.size(); lo += kBlock) {
    Bits count = 0;  // a lane as wide as the data
    for (const Bits b : m.subspan(lo, std::min(kBlock, m.size() - lo))) count += b >= t;
    total += static_cast<std::size_t>(count);
  }
  return total;
}

// A cut selects all entries above `value`, and the first `ties` entries that equal `value`.
template <class Bits>
struct Cut {
  Bits value;
  std::size_t ties;
};

// Returns the cut that selects the k largest of m, 1 <= k <= m.size(). Finds the k-th largest value bit by
// bit, with one counting pass for each bit. Inner loops do not branch on the data, unlike those of
// std::nth_element.
template <class Bits>
Cut<Bits> cut_at(std::span<const Bits> m, std::size_t k) {
  Bits low = m[0], high = m[0];
  for (const Bits b : m) {
    low = std::min(low, b);
    high = std::max(high, b);
  }
  Bits t = 0;
  for (int bit = std::numeric_limits<Bits>::digits - 1; bit >= 0; --bit) {
    const auto trial = static_cast<Bits>(t | (Bits{1} << bit));
    if (trial > high) continue;
    const std::size_t reached = trial <= low ? m.size() : count_at_least(m, trial);
    if (reached < k) continue;
    t = trial;
    if (reached == k) break;
  }
  const std::size_t above = t < high ? count_at_least(m, static_cast<Bits>(t + 1)) : 0;
  return {t, k - above};
}

// Writes the indices in [lo, hi) where m reaches t to `out`, which has room for one more. Returns their end.
// Uses no branches.
template <class Bits>
std::uint32_t* append_reaching(const Bits* m, std::size_t lo, std::size_t hi, Bits t, std::uint32_t* out) {
  std::size_t n = 0;
  for (std::size_t j = lo; j < hi; ++j) {
    out[n] = static_cast<std::uint32_t>(j);
    n += m[j] >= t ? 1 : 0;
  }
  return out + n;
}

// Writes the positions that the cut selects, ascending. REQUIRES: `out` has room for one more.
template <class Bits>
void emit(std::span<const Bits> m, Cut<Bits> cut, std::uint32_t* out) {
  std::size_t end = 0;  // the end of the part in which entries equal to the value are taken
  for (std::size_t ties = cut.ties; ties > 0; ++end) ties -= m[end] == cut.value;
  out = append_reaching(m.data(), 0, end, cut.value, out);
  if (cut.value < std::numeric_limits<Bits>::max())
    append_reaching(m.data(), end, m.size(), static_cast<Bits>(cut.value + 1), out);
}

// Estimates from a sample a magnitude that somewhat more than k entries of v reach. Sets `expected` to the
// number of entries that reach it. Returns nullopt if sampling does not pay off.
template <class Real>
std::optional<MagnitudeBits<Real>> sampled_floor(View<Real> v, std::size_t k, std::size_t& expected) {
  constexpr std::size_t kSample = 2048;
  if (v.size() < 8 * kSample || k > v.size() / 16) return std::nullopt;
  std::array<MagnitudeBits<Real>, kSample> sample;
  // Uses multiples of the golden ratio, because a constant stride could match the length of a matrix row.
  std::uint64_t place = 0;
  for (auto& b : sample) {
    b = magnitude(v[static_cast<std::size_t>(((place >> 32) * v.size()) >> 32)]);
    place += 0x9E3779B97F4A7C15u;
  }
  const double mean = static_cast<double>(k) * kSample / static_cast<double>(v.size());
  const auto rank = static_cast<std::size_t>(mean + 4 * std::sqrt(mean) + 4);
  expected = v.size() / kSample * rank;
  return cut_at<MagnitudeBits<Real>>(sample, rank).value;
}

constexpr std::size_t kFlagBlock = 4096;

// Writes the positions of the entries that reach `floor`, which must be few. Returns their number, or nullopt
// if `out` is too small.
template <class Real>
std::optional<std::size_t> collect(View<Real> v, MagnitudeBits<Real> floor, std::span<std::uint32_t> out) {
  static_assert(std::endian::native == std::endian::little, "the first flag is the lowest byte");
  std::array<std::uint8_t, kFlagBlock> flags{};
  std::size_t found = 0;
  for (std::size_t lo = 0; lo < v.size(); lo += kFlagBlock) {
    if (found + kFlagBlock > out.size()) return std::nullopt;
    const std::size_t n = std::min(kFlagBlock, v.size() - lo);
    for (std::size_t j = 0; j < n; ++j) flags[j] = magnitude(v[lo + j]) >= floor ? 1 : 0;
    std::fill(flags.begin() + static_cast<std::ptrdiff_t>(n), flags.end(), std::uint8_t{0});
    for (std::size_t j = 0; j < n; j += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, flags.data() + j, 8);
      for (; eight != 0; eight &= eight - 1)
        out[found++] =
            static_cast<std::uint32_t>(lo + j) + static_cast<std::uint32_t>(std::countr_zero(eight)) / 8;
    }
  }
  return found;
}

// Selects among the entries that reach a sampled floor. Returns false if they are too few or too many.
template <class Real>
bool select_from_sample(View<Real> v, std::size_t k, Scratch<Real>& scratch,
                        std::vector<std::uint32_t>& out) {
  std::size_t expected = 0;
  const auto floor = sampled_floor(v, k, expected);
  if (!floor) return false;
  const std::size_t room = 2 * expected + kFlagBlock;
  if (scratch.order.size() < room) scratch.order.resize(room);
  if (scratch.magnitudes.size() < scratch.order.size()) scratch.magnitudes.resize(scratch.order.size());
  const auto found = collect<Real>(v, *floor, scratch.order);
  if (!found || *found < k) return false;
  for (std::size_t i = 0; i < *found; ++i) scratch.magnitudes[i] = magnitude(v[scratch.order[i]]);
  const auto m = std::span<const MagnitudeBits<Real>>(scratch.magnitudes).first(*found);
  out.resize(k + 1);
  emit(m, cut_at(m, k), out.data());
  out.resize(k);
  for (std::uint32_t& j : out) j = scratch.order[j];
  return true;
}

}  // namespace

template <class Real>
void select_largest(View<Real> v, std::uint32_t k, Scratch<Real>& scratch, std::vector<std::uint32_t>& out) {
  if (k == 0 || k > v.size()) throw std::logic_error("select_largest: k must be in 1..d");
  if (k == 1) return select_one(v, out);
  if (select_from_sample(v, k, scratch, out)) return;
  if (k <= kFew) return select_few(v, k, out);
  if (scratch.magnitudes.size() < v.size()) scratch.magnitudes.resize(v.size());
  const auto m = std::span(scratch.magnitudes).first(v.size());
  for (std::size_t j = 0; j < v.size(); ++j) m[j] = magnitude(v[j]);
  out.resize(std::size_t{k} + 1);
  const std::span<const MagnitudeBits<Real>> all = m;
  emit(all, cut_at(all, k), out.data());
  out.resize(k);
}

template <class Real>
const Payload<Real>& TopK::operator()(Vec<Real>& v, const RngKey&, Scratch<Real>& scratch,
                                      PayloadBuffer<Real>& to) const {
  select_largest<Real>(v, k.count, scratch, to.indices());
  return gather<Real>(v, 1, to);
}

template const Payload<float>& TopK::operator()(Vec<float>&, const RngKey&, Scratch<float>&,
                                                PayloadBuffer<float>&) const;
template const Payload<double>& TopK::operator()(Vec<double>&, const RngKey&, Scratch<double>&,
                                                 PayloadBuffer<double>&) const;
template void select_largest(View<float>, std::uint32_t, Scratch<float>&, std::vector<std::uint32_t>&);
template void select_largest(View<double>, std::uint32_t, Scratch<double>&, std::vector<std::uint32_t>&);

}  // namespace gradwire
