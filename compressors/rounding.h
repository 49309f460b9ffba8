// Helpers of the compressors that round every entry and leave a dense vector. Each of them has
//   Packed<Real> round(std::span<Real> v, const RngKey&, Scratch<Real>&) const
// which rounds in place. Compositions apply it to the values of a sparse payload.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "compressors/payload.h"

namespace gradwire {

template <class Real, class C>
const Payload<Real>& rounded(const C& c, Vec<Real>& v, const RngKey& key, Scratch<Real>& scratch,
                             PayloadBuffer<Real>& to) {
  const Packed<Real> packed = c.round(std::span<Real>(v), key, scratch);
  to.whole(v);
  to.set_packing(packed);
  return to.view();
}

// Calls body(lo, u) for consecutive blocks of [0, size) that start at lo. The numbers u[0 .. n) are uniform
// in [0, 1), with all bits of Real's mantissa. Two floats come from one draw. The iterations of the loops are
// independent, so the compiler vectorizes them.
inline constexpr std::size_t kUniformPiece = 1024;
template <class Real, class Body>
void with_uniforms(const RngKey& key, std::size_t size, Body body) {
  static_assert(std::endian::native == std::endian::little, "the first of two floats is in the low half");
  RngStream stream(key);
  std::array<std::uint64_t, kUniformPiece> words;
  std::array<Real, kUniformPiece> u;
  for (std::size_t lo = 0; lo < size; lo += kUniformPiece) {
    const std::size_t n = std::min(kUniformPiece, size - lo);
    if constexpr (sizeof(Real) == 4) {
      stream.fill(std::span(words).first((n + 1) / 2));
      std::array<std::uint32_t, kUniformPiece> halves;
      std::memcpy(halves.data(), words.data(), (n + 1) / 2 * 8);
      for (std::size_t j = 0; j < n; ++j)
        u[j] = static_cast<float>(static_cast<std::int32_t>(halves[j] >> 8)) * 0x1p-24f;
    } else {
      stream.fill(std::span(words).first(n));
      for (std::size_t j = 0; j < n; ++j)
        u[j] = static_cast<double>(static_cast<std::int64_t>(words[j] >> 11)) * 0x1p-53;
    }
    body(lo, std::span<const Real>(u).first(n));
  }
}

}  // namespace gradwire
