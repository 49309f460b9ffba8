// Packs fields of a fixed number of bits without gaps, starting at the lowest bit of the lowest byte.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace gradwire {

static_assert(std::endian::native == std::endian::little, "sections are written in memory order");

// Packs field(0), ..., field(count - 1), each below 2^bits. REQUIRES: `out` has packed_bytes(count, bits)
// bytes.
template <class Field>
void pack_fields(std::size_t count, std::uint32_t bits, std::span<std::byte> out, Field field) {
  std::byte* to = out.data();
  std::uint64_t pending = 0;  // the last `filled` < 32 bits, not yet written
  std::uint32_t filled = 0;
  for (std::size_t i = 0; i < count; ++i) {
    pending |= static_cast<std::uint64_t>(field(i)) << filled;
    filled += bits;
    if (filled >= 32) {
      std::memcpy(to, &pending, 4);
      to += 4;
      pending >>= 32;
      filled -= 32;
    }
  }
  if (filled > 0) std::memcpy(to, &pending, (filled + 7) / 8);
}

// Calls use(i, field) for each of `count` fields. REQUIRES: `in` has packed_bytes(count, bits) bytes.
template <class Use>
void unpack_fields(std::span<const std::byte> in, std::size_t count, std::uint32_t bits, Use use) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  // A field has at most 32 bits, so the 8 bytes from its first byte on always contain it.
  std::size_t i = 0;
  std::uint64_t at = 0;
  for (; i < count && (at >> 3) + 8 <= in.size(); ++i, at += bits) {
    std::uint64_t word;
    std::memcpy(&word, in.data() + (at >> 3), 8);
    use(i, static_cast<std::uint32_t>((word >> (at & 7)) & mask));
  }
  for (; i < count; ++i, at += bits) {
    std::uint64_t word = 0;
    const std::size_t left = in.size() - (at >> 3);
    if (left > 0) std::memcpy(&word, in.data() + (at >> 3), std::min<std::size_t>(left, 8));
    use(i, static_cast<std::uint32_t>((word >> (at & 7)) & mask));
  }
}

// Returns whether the last byte of `in` is zero after the first `used_bits` bits of `in`.
inline bool tail_is_zero(std::span<const std::byte> in, std::uint64_t used_bits) {
  return used_bits % 8 == 0 || (in.back() >> (used_bits % 8)) == std::byte{0};
}

}  // namespace gradwire
