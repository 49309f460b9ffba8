#include "algorithms/optimizers/microadam.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "compressors/norms.h"
#include "compressors/topk.h"

namespace gradwire {
namespace {

constexpr std::uint32_t kLevels = 15;  // the largest 4-bit code

// The error e: 4-bit codes, two in a byte, and [δ, Δ] of each block.
template <class Real>
struct FourBitError {
  std::span<std::uint8_t> codes;
  std::span<Real> ranges;  // δ, Δ of block 0, of block 1, ...
  std::size_t block;

  std::uint32_t code(std::size_t j) const { return codes[j / 2] >> (j % 2 * 4) & kLevels; }
  void set_code(std::size_t j, std::uint32_t q) {
    const unsigned shift = j % 2 * 4;
    codes[j / 2] = static_cast<std::uint8_t>((codes[j / 2] & ~(kLevels << shift)) | q << shift);
  }

  // Computes a += Q⁻¹(e).
  void add_to(Vec<Real>& a) const {
    for (std::size_t lo = 0, b = 0; lo < a.size(); lo += block, ++b) {
      const Real low = ranges[2 * b], u = (ranges[2 * b + 1] - low) / Real(kLevels);
      const std::size_t hi = std::min(a.size(), lo + block);
      for (std::size_t j = lo; j < hi; ++j) a[j] += Real(code(j)) * u + low;
    }
  }
  // Computes e = Q(a).
  void take(const Vec<Real>& a) {
    for (std::size_t lo = 0, b = 0; lo < a.size(); lo += block, ++b) {
      const std::size_t hi = std::min(a.size(), lo + block);
      const auto [low_at, high_at] = std::minmax_element(a.begin() + static_cast<std::ptrdiff_t>(lo),
                                                         a.begin() + static_cast<std::ptrdiff_t>(hi));
      const Real low = *low_at, u = (*high_at - low) / Real(kLevels);
      ranges[2 * b] = low;
      ranges[2 * b + 1] = *high_at;
      for (std::size_t j = lo; j < hi; ++j) set_code(j, rounded((a[j] - low) / u));
    }
  }
  // Returns the nearest code. It is 0 for 0/0, which occurs if all values of a block are equal.
  static std::uint32_t rounded(Real level) {
    const Real q = std::floor(level + Real(0.5));
    return q >= Real(kLevels) ? kLevels : q > 0 ? static_cast<std::uint32_t>(q) : 0;
  }
};

// Returns the indices of the k largest |a|, ascending. Preserves `order`, which holds the batches of the
// client's steps.
template <class Real>
const std::vector<std::uint32_t>& largest(const Vec<Real>& a, std::uint32_t k, Scratch<Real>& scratch) {
  scratch.order.swap(scratch.order_of_optimizer);
  select_largest<Real>(a, k, scratch, scratch.selected);
  scratch.order.swap(scratch.order_of_optimizer);
  return scratch.selected;
}

// The window G. The places and the values of slot i start at index i k.
template <class Real>
struct ErrorWindow {
  std::span<const std::uint32_t> places;
  std::span<const Real> values;
  std::size_t k, slots;  // entries of a slot, and number of filled slots
};

// Computes y −= γ m̂/(ε + √v̂). Visits the coordinates once, in blocks that fit the cache, and never stores
// the whole m̂ and v̂.
template <class Real>
void move_by_stats(const MicroAdam& rule, std::uint32_t t, Real gamma, const ErrorWindow<Real>& G,
                   Vec<Real>& y) {
  std::array<Real, MicroAdam::kMaxWindow> weight1, weight2;
  std::array<std::size_t, MicroAdam::kMaxWindow> next;
  for (std::uint32_t i = 0; i < G.slots; ++i) {
    const std::uint32_t age = (t % rule.window + rule.window - i) % rule.window;
    weight1[i] = Real(integer_power(rule.beta1, age));
    weight2[i] = Real(integer_power(rule.beta2, age));
    next[i] = i * G.k;
  }
  const Real scale1 = Real((1 - rule.beta1) / (1 - integer_power(rule.beta1, t + 1)));
  const Real scale2 = Real((1 - rule.beta2) / (1 - integer_power(rule.beta2, t + 1)));
  constexpr std::size_t kPiece = 512;
  std::array<Real, kPiece> m, v;
  for (std::size_t lo = 0; lo < y.size(); lo += kPiece) {
    const std::size_t hi = std::min(y.size(), lo + kPiece);
    m.fill(Real(0));
    v.fill(Real(0));
    for (std::size_t i = 0; i < G.slots; ++i)
      for (; next[i] < (i + 1) * G.k && G.places[next[i]] < hi; ++next[i]) {
        const Real value = G.values[next[i]];
        m[G.places[next[i]] - lo] += weight1[i] * value;
        v[G.places[next[i]] - lo] += weight2[i] * (value * value);
      }
    for (std::size_t j = lo; j < hi; ++j)
      y[j] -= gamma * (scale1 * m[j - lo]) / (Real(rule.eps) + std::sqrt(scale2 * v[j - lo]));
  }
}

}  // namespace

template <class Real>
void MicroAdam::step(std::uint32_t t, Real gamma, Vec<Real>& g, Vec<Real>& y, Scratch<Real>& scratch) const {
  const std::size_t d = g.size(), slot_size = k.count;
  scratch.codes.resize((d + 1) / 2);
  scratch.places.resize(window * slot_size);
  Vec<Real>& ranges = scratch.vec(kOptimizerVec, 2 * ((d + block - 1) / block));
  Vec<Real>& values = scratch.vec(kOptimizerVec + 1, window * slot_size);
  if (t == 0) {
    std::fill(scratch.codes.begin(), scratch.codes.end(), std::uint8_t{0});
    std::fill(scratch.places.begin(), scratch.places.end(), 0u);
    std::fill(ranges.begin(), ranges.end(), Real(0));
    std::fill(values.begin(), values.end(), Real(0));
  }
  FourBitError<Real> error{scratch.codes, ranges, block};
  error.add_to(g);
  if (!all_finite<Real>(g)) {  // y must show the value: a sparse step could leave it out
    for (std::size_t j = 0; j < d; ++j) y[j] -= gamma * g[j];
    return;
  }
  const std::size_t slot = t % window * slot_size;
  const std::vector<std::uint32_t>& I = largest(g, k.count, scratch);
  for (std::size_t i = 0; i < slot_size; ++i) {
    scratch.places[slot + i] = I[i];
    values[slot + i] = g[I[i]];
    g[I[i]] = 0;
  }
  error.take(g);
  const std::size_t slots = std::min<std::size_t>(std::size_t{t} + 1, window);
  move_by_stats<Real>(*this, t, gamma, {scratch.places, values, slot_size, slots}, y);
}

template void MicroAdam::step(std::uint32_t, float, Vec<float>&, Vec<float>&, Scratch<float>&) const;
template void MicroAdam::step(std::uint32_t, double, Vec<double>&, Vec<double>&, Scratch<double>&) const;

}  // namespace gradwire
