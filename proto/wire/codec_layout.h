// The layout of one part: its header, and the sizes that follow from it. Encoder, size function and decoder
// share this code, so that they cannot disagree.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compressors/payload.h"
#include "proto/wire/bits.h"
#include "proto/wire/codec.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {

// Sizes of encoded header fields: tags below 16 take one byte.
inline constexpr std::uint64_t kEnumField = 2, kFixed32Field = 5, kFixed64Field = 9;
inline constexpr std::uint64_t kRoundFields = kEnumField + 2 * kFixed64Field;
inline constexpr std::uint64_t kBodyFields = 2 * kFixed32Field;
inline constexpr std::uint64_t kReplyFields = kEnumField + 2 * kFixed32Field + 3 * kFixed64Field;
inline constexpr std::uint64_t kEvaluationFields = 2 * kFixed64Field;

// The longest header of a round or reply of a correct peer. It bounds the objects that parsing can make.
inline constexpr std::size_t kMaxRoundHeaderBytes = 1024;

struct Layout {
  Shape shape = Shape::kNothing;
  Packing packing = Packing::kPlain;
  bool as_plain = false;  // written plainly, because some value does not fit `packing`
  bool seeded = false;
  bool continued = false;  // the next part is the second summand
  std::uint32_t dim = 0;
  std::uint32_t count = 0;
  std::uint32_t first = 0;
  std::uint32_t rows = 0;
  std::uint32_t levels = 0;
  double unit = 1;                // in the header if has_unit()
  std::uint64_t index_bytes = 0;  // size of the section, before zstd
  std::uint64_t value_bytes = 0;
  std::uint64_t index_zstd = 0;  // as sent; 0 if sent raw
  std::uint64_t value_zstd = 0;

  bool has_count() const { return shape != Shape::kNothing && shape != Shape::kDense; }
  bool is_packed() const { return packing != Packing::kPlain && !as_plain; }
  bool has_levels() const { return packing == Packing::kLevels || packing == Packing::kDithered; }
  // Returns whether the header has the unit. For kNatural, it does unless the unit is 1. For other packings,
  // it does if the values are written plainly; otherwise the value section has the unit.
  bool has_unit() const { return packing == Packing::kNatural ? unit != 1 : as_plain; }
  bool has_first() const { return shape == Shape::kRange && !seeded; }
  std::uint64_t sent_bytes() const {
    return (index_zstd != 0 ? index_zstd : index_bytes) + (value_zstd != 0 ? value_zstd : value_bytes);
  }
  // Returns the size of the wire::Part with its tag and length.
  std::uint64_t header_bytes() const {
    return 2 + 2 * kEnumField + kFixed32Field + (seeded ? 2 : 0) + (has_count() ? kFixed32Field : 0) +
           (has_first() ? kFixed32Field : 0) + (has_unit() ? kFixed64Field : 0) +
           (has_levels() ? kFixed32Field : 0) + (rows != 0 ? kFixed32Field : 0) + (continued ? 2 : 0) +
           (index_zstd != 0 ? kFixed64Field : 0) + (value_zstd != 0 ? kFixed64Field : 0);
  }
};

// Returns the layout of `p` before zstd. `seeded` means that the receiver can draw its support again. Throws
// std::logic_error if the payload contradicts itself.
template <class Real>
Layout layout_of(const Payload<Real>& p, bool seeded);

// Returns the key of one summand of one part. `key` is that of the message's first part.
inline RngKey part_key(const RngKey& key, std::size_t part, std::size_t link) {
  RngKey own = key;
  own.domain = key.domain + static_cast<std::uint32_t>(part + link * kSecondDraw);
  return own;
}

void write_layout(const Layout& layout, wire::Part& to);

// Reads a layout, and checks everything that the header alone can tell. Sizes assume `real_bytes` per value.
// `may_be_seeded` is true for uplinks, and for downlinks if the algorithm compresses broadcasts.
Result<Layout> read_layout(const wire::Part& from, std::uint32_t max_dim, std::size_t real_bytes,
                           bool may_be_seeded);

}  // namespace gradwire
