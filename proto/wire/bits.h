// Bit packing of index and value sections. Fields follow one another without gaps, from the lowest bit of the
// lowest byte. The unused bits of the last byte are zero, and readers check this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "compressors/payload.h"

namespace gradwire {

// Returns the size in bytes of `count` fields of `bits` <= 32 bits each.
constexpr std::uint64_t packed_bytes(std::uint64_t count, std::uint32_t bits) {
  return (count * bits + 7) / 8;
}

// Returns the size in bytes of the indices of a sparse part, which are below dim and strictly ascending. They
// take ceil(log2 dim) bits each, or a bitmap of dim bits if that is smaller. Both ends know dim and count, so
// the message does not name the encoding.
std::uint64_t index_section_bytes(std::uint32_t dim, std::uint64_t count);
// Packs indices. `out` has index_section_bytes(dim, indices.size()) bytes.
void pack_indices(std::span<const std::uint32_t> indices, std::uint32_t dim, std::span<std::byte> out);
// Unpacks indices. Fails if they are not strictly ascending or not below dim, or if unused bits are set.
Status unpack_indices(std::span<const std::byte> in, std::uint32_t dim, std::span<std::uint32_t> indices);

// Returns the size in bytes of `count` values in a packing other than kPlain, including the unit if the
// packing sends it.
std::uint64_t value_section_bytes(Packing packing, std::uint32_t levels, std::uint64_t count,
                                  std::size_t real_bytes);
// Returns whether pack_values() preserves all values bit for bit.
template <class Real>
bool fits_packing(View<Real> values, const Packed<Real>& packed);
// Packs values. `out` has value_section_bytes(...) bytes.
template <class Real>
void pack_values(View<Real> values, const Packed<Real>& packed, std::span<std::byte> out);
// Unpacks values. Reads packed.unit if the packing sends it, else uses the given one. Fails if a unit or
// value is not finite, a field does not encode a value, or unused bits are set.
template <class Real>
Status unpack_values(std::span<const std::byte> in, Packed<Real>& packed, Out<Real> values);

}  // namespace gradwire
