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

// Of `count` values in a packing other than kPlain, the unit in front of them included where it is sent.
std::uint64_t value_section_bytes(Packing packing, std::uint32_t levels, std::uint64_t count,
                                  std::size_t real_bytes);
// Whether pack_values can write all values: every one is, bit for bit, what its field is read back as.
template <class Real>
bool fits_packing(View<Real> values, const Packed<Real>& packed);
// `out` has value_section_bytes(...) bytes.
template <class Real>
void pack_values(View<Real> values, const Packed<Real>& packed, std::span<std::byte> out);
// packed.unit is read where it is sent, and used where not. Error: a unit or value that is not finite, a
// field that stands for nothing, or unused bits set.
template <class Real>
Status unpack_values(std::span<const std::byte> in, Packed<Real>& packed, Out<Real> values);

}  // namespace gradwire
