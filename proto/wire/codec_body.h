// Definitions of types that codec.h only declares.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_buffer.h"
#include "proto/wire/codec.h"

namespace gradwire {

// The encoded bytes of one part, outside the sender's own vectors.
struct PartSpace {
  ByteBuffer indices, values;           // bit-packed
  ByteBuffer index_frame, value_frame;  // packed sections or plain values, compressed

  void release_if_large() {
    for (ByteBuffer* b : {&indices, &values, &index_frame, &value_frame}) b->release_if_large();
  }
};

template <class Real>
class EncodedBody {
 public:
  std::string header;  // a serialized wire::Body
  std::vector<std::span<const std::byte>> sections;
  std::uint64_t payload_len = 0;
  std::uint32_t payload_crc = 0;
  std::array<PartSpace, kMaxParts * kMaxLinks> spaces;
  bool borrows = false;  // some section views the downlink's own vectors
};

}  // namespace gradwire
