#include "proto/wire/bits.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "proto/wire/bit_fields.h"

namespace gradwire {
namespace {

constexpr std::uint64_t bitmap_bytes(std::uint32_t dim) { return packed_bytes(dim, 1); }

bool is_bitmap(std::uint32_t dim, std::uint64_t count) {
  return bitmap_bytes(dim) < packed_bytes(count, index_bits(dim));
}

// Returns the 8 bytes from `begin`, with zeros after the end.
std::uint64_t word_at(std::span<const std::byte> in, std::size_t begin) {
  std::uint64_t word = 0;
  std::memcpy(&word, in.data() + begin, std::min<std::size_t>(8, in.size() - begin));
  return word;
}

Status unpack_bitmap(std::span<const std::byte> in, std::uint32_t dim, std::span<std::uint32_t> indices) {
  if (!tail_is_zero(in, dim)) return Error{"unused bits after the bitmap of the indices are set"};
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

}  // namespace

std::uint64_t index_section_bytes(std::uint32_t dim, std::uint64_t count) {
  return std::min(bitmap_bytes(dim), packed_bytes(count, index_bits(dim)));
}

void pack_indices(std::span<const std::uint32_t> indices, std::uint32_t dim, std::span<std::byte> out) {
  if (!is_bitmap(dim, indices.size())) {
    pack_fields(indices.size(), index_bits(dim), out, [&](std::size_t i) { return indices[i]; });
    return;
  }
  std::fill(out.begin(), out.end(), std::byte{0});
  for (const std::uint32_t i : indices) out[i >> 3] |= std::byte{1} << (i & 7);
}

Status unpack_indices(std::span<const std::byte> in, std::uint32_t dim, std::span<std::uint32_t> indices) {
  if (is_bitmap(dim, indices.size())) return unpack_bitmap(in, dim, indices);
  const std::uint32_t bits = index_bits(dim);
  if (!tail_is_zero(in, std::uint64_t{bits} * indices.size()))
    return Error{"unused bits after the indices are set"};
  std::uint64_t least = 0;  // least value of the next index
  bool ascending = true;
  unpack_fields(in, indices.size(), bits, [&](std::size_t i, std::uint32_t index) {
    ascending &= index >= least;
    least = std::uint64_t{index} + 1;
    indices[i] = index;
  });
  if (!ascending) return Error{"the indices are not strictly ascending"};
  if (least > dim) return Error{"an index is not below the dimension"};
  return Unit{};
}

}  // namespace gradwire
