// Bit packing of index and value sections: fields follow one another without gaps, lowest bit of the lowest
// byte first; the unused bits of the last byte are zero, and readers insist on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compressors/payload.h"
#include "proto/result.h"

namespace gradwire {

// Bytes of `count` fields of `bits` <= 32 bits each.
constexpr std::uint64_t packed_bytes(std::uint64_t count, std::uint32_t bits) {
  return (count * bits + 7) / 8;
}

// The strictly ascending indices below dim of a sparse part: ceil(log2 dim) bits each, or a bitmap of dim
// bits when that is smaller. Both sides know dim and count, so nothing says which.
std::uint64_t index_section_bytes(std::uint32_t dim, std::uint64_t count);
// `out` has index_section_bytes(dim, indices.size()) bytes.
void pack_indices(std::span<const std::uint32_t> indices, std::uint32_t dim, std::span<std::byte> out);
// Error: not strictly ascending, not below dim, or unused bits set.
Status unpack_indices(std::span<const std::byte> in, std::uint32_t dim, std::span<std::uint32_t> indices);

// Zeros and signed normal powers of two: one sign bit above the exponent field of Real.
template <class Real>
inline constexpr std::uint32_t kNaturalBits = sizeof(Real) == 4 ? 9 : 12;
// Whether pack_natural can write all values: false with a mantissa bit, a subnormal, an infinity or a nan.
template <class Real>
bool is_natural(View<Real> values);
// `out` has packed_bytes(values.size(), kNaturalBits) bytes.
template <class Real>
void pack_natural(View<Real> values, std::span<std::byte> out);
// Error: an infinity or a nan, or unused bits set.
template <class Real>
Status unpack_natural(std::span<const std::byte> in, Out<Real> values);

}  // namespace gradwire
