// Bit packing of index and value sections: fields follow one another without gaps, lowest bit of the lowest
// byte first; the unused bits of the last byte are zero, and readers check this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "compressors/payload.h"

namespace gradwire {

// Bytes of `count` fields of `bits` <= 32 bits each.
constexpr std::uint64_t packed_bytes(std::uint64_t count, std::uint32_t bits) {
  return (count * bits + 7) / 8;
}

// The strictly ascending indices below dim of a sparse part: ceil(log2 dim) bits each, or a bitmap of dim
// bits when that is smaller. Both ends know dim and count, so the message does not say which.
std::uint64_t index_section_bytes(std::uint32_t dim, std::uint64_t count);
// `out` has index_section_bytes(dim, indices.size()) bytes.
void pack_indices(std::span<const std::uint32_t> indices, std::uint32_t dim, std::span<std::byte> out);
// Error: not strictly ascending, not below dim, or unused bits set.
Status unpack_indices(std::span<const std::byte> in, std::uint32_t dim, std::span<std::uint32_t> indices);

// Bytes of `count` values in a packing other than kPlain, including the unit in front where the packing sends
// it.
std::uint64_t value_section_bytes(Packing packing, std::uint32_t levels, std::uint64_t count,
                                  std::size_t real_bytes);
// Whether pack_values can write all values: each one reads back from its field bit for bit.
template <class Real>
bool fits_packing(View<Real> values, const Packed<Real>& packed);
// `out` has value_section_bytes(...) bytes.
template <class Real>
void pack_values(View<Real> values, const Packed<Real>& packed, std::span<std::byte> out);
// Reads packed.unit where the packing sends it, else uses the given one. Error: a unit or value that is not
// finite, a field that encodes no value, or unused bits set.
template <class Real>
Status unpack_values(std::span<const std::byte> in, Packed<Real>& packed, Out<Real> values);

}  // namespace gradwire
