#include "proto/bits.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace gradwire {
namespace {

static_assert(std::endian::native == std::endian::little, "sections are written as they lie in memory");

// Writes `count` fields, field(i) < 2^bits; `out` holds packed_bytes(count, bits) bytes.
template <class Field>
void pack(std::size_t count, std::uint32_t bits, std::span<std::byte> out, Field field) {
  std::byte* to = out.data();
  std::uint64_t pending = 0;  // `filled` < 32 bits wait for a whole word
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

// Calls use(i, field) for `count` fields; `in` holds packed_bytes(count, bits) bytes.
template <class Use>
void unpack(std::span<const std::byte> in, std::size_t count, std::uint32_t bits, Use use) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  // A field begins in one of the 8 bits of its first byte, so 8 bytes always hold the whole of it.
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

// Whether the bits of the last byte behind `used_bits` are zero.
bool tail_is_zero(std::span<const std::byte> in, std::uint64_t used_bits) {
  return used_bits % 8 == 0 || (in.back() >> (used_bits % 8)) == std::byte{0};
}

constexpr std::uint64_t bitmap_bytes(std::uint32_t dim) { return packed_bytes(dim, 1); }

bool is_bitmap(std::uint32_t dim, std::uint64_t count) {
  return bitmap_bytes(dim) < packed_bytes(count, index_bits(dim));
}

// The 8 bytes from `begin`, zeros behind the end.
std::uint64_t word_at(std::span<const std::byte> in, std::size_t begin) {
  std::uint64_t word = 0;
  std::memcpy(&word, in.data() + begin, std::min<std::size_t>(8, in.size() - begin));
  return word;
}

Status unpack_bitmap(std::span<const std::byte> in, std::uint32_t dim, std::span<std::uint32_t> indices) {
  if (!tail_is_zero(in, dim)) return Error{"unused bits behind the bitmap of the indices are set"};
  std::size_t found = 0;
  for (std::size_t begin = 0; begin < in.size(); begin += 8) {
    for (std::uint64_t word = word_at(in, begin); word != 0; word &= word - 1) {
      if (found == indices.size()) return Error{"the bitmap has more indices than the part has values"};
      indices[found++] =
          static_cast<std::uint32_t>(8 * begin + static_cast<std::size_t>(std::countr_zero(word)));
    }
  }
  if (found != indices.size()) return Error{"the bitmap has fewer indices than the part has values"};
  return Unit{};
}

template <class Real>
using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
template <class Real>
constexpr int kMantissaBits = sizeof(Real) == 4 ? 23 : 52;
template <class Real>
constexpr std::uint32_t kExponentMask = sizeof(Real) == 4 ? 0xFF : 0x7FF;

}  // namespace

std::uint64_t index_section_bytes(std::uint32_t dim, std::uint64_t count) {
  return std::min(bitmap_bytes(dim), packed_bytes(count, index_bits(dim)));
}

void pack_indices(std::span<const std::uint32_t> indices, std::uint32_t dim, std::span<std::byte> out) {
  if (!is_bitmap(dim, indices.size())) {
    pack(indices.size(), index_bits(dim), out, [&](std::size_t i) { return indices[i]; });
    return;
  }
  std::fill(out.begin(), out.end(), std::byte{0});
  for (const std::uint32_t i : indices) out[i >> 3] |= std::byte{1} << (i & 7);
}

Status unpack_indices(std::span<const std::byte> in, std::uint32_t dim, std::span<std::uint32_t> indices) {
  if (is_bitmap(dim, indices.size())) return unpack_bitmap(in, dim, indices);
  const std::uint32_t bits = index_bits(dim);
  if (!tail_is_zero(in, std::uint64_t{bits} * indices.size()))
    return Error{"unused bits behind the indices are set"};
  std::uint64_t least = 0;  // of the next index
  bool ascending = true;
  unpack(in, indices.size(), bits, [&](std::size_t i, std::uint32_t index) {
    ascending &= index >= least;
    least = std::uint64_t{index} + 1;
    indices[i] = index;
  });
  if (!ascending) return Error{"the indices are not strictly ascending"};
  if (least > dim) return Error{"an index is not below the dimension"};
  return Unit{};
}

template <class Real>
bool is_natural(View<Real> values) {
  constexpr Bits<Real> kMantissa = (Bits<Real>{1} << kMantissaBits<Real>)-1;
  Bits<Real> mantissas = 0;
  bool finite = true;
  for (const Real v : values) {
    const auto bits = std::bit_cast<Bits<Real>>(v);
    mantissas |= bits & kMantissa;
    finite &= ((bits >> kMantissaBits<Real>)&kExponentMask<Real>) != kExponentMask<Real>;
  }
  return mantissas == 0 && finite;
}

template <class Real>
void pack_natural(View<Real> values, std::span<std::byte> out) {
  pack(values.size(), kNaturalBits<Real>, out, [&](std::size_t i) {
    return static_cast<std::uint32_t>(std::bit_cast<Bits<Real>>(values[i]) >> kMantissaBits<Real>);
  });
}

template <class Real>
Status unpack_natural(std::span<const std::byte> in, Out<Real> values) {
  if (!tail_is_zero(in, std::uint64_t{kNaturalBits<Real>} * values.size())) {
    return Error{"unused bits behind the natural values are set"};
  }
  bool finite = true;
  unpack(in, values.size(), kNaturalBits<Real>, [&](std::size_t i, std::uint32_t field) {
    finite &= (field & kExponentMask<Real>) != kExponentMask<Real>;
    values[i] = std::bit_cast<Real>(static_cast<Bits<Real>>(Bits<Real>{field} << kMantissaBits<Real>));
  });
  if (!finite) return Error{"a natural value is not finite"};
  return Unit{};
}

template bool is_natural<float>(View<float>);
template bool is_natural<double>(View<double>);
template void pack_natural<float>(View<float>, std::span<std::byte>);
template void pack_natural<double>(View<double>, std::span<std::byte>);
template Status unpack_natural<float>(std::span<const std::byte>, Out<float>);
template Status unpack_natural<double>(std::span<const std::byte>, Out<double>);

}  // namespace gradwire
