// A walk over the fields of a serialised message, to be made before protobuf parses bytes from a peer:
// protobuf believes the length of an embedded message even when that is longer than the message around it,
// and then reserves up to 50 MB for a string inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gradwire {

// Takes a varint from the front; false when it does not end.
inline bool take_varint(std::span<const std::byte>& from, std::uint64_t& value) {
  value = 0;
  for (std::size_t i = 0; i < 10 && i < from.size(); ++i) {
    const auto byte = static_cast<std::uint64_t>(from[i]);
    value |= (byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      from = from.subspan(i + 1);
      return true;
    }
  }
  return false;
}

// Whether all fields end within `message`, and inner(number, content) holds for each one that has a length.
// Groups are refused: no message of ours has any.
template <class Inner>
bool fields_fit(std::span<const std::byte> message, Inner inner) {
  while (!message.empty()) {
    std::uint64_t tag = 0, value = 0;
    if (!take_varint(message, tag) || tag > 0xFFFFFFFF) return false;
    enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
    switch (tag & 7) {
      case kVarint:
        if (!take_varint(message, value)) return false;
        continue;
      case kFixed64: value = 8; break;
      case kFixed32: value = 4; break;
      case kLength:
        if (!take_varint(message, value)) return false;
        break;
      default: return false;
    }
    if (value > message.size()) return false;
    if ((tag & 7) == kLength && !inner(static_cast<int>(tag >> 3), message.first(value))) return false;
    message = message.subspan(value);
  }
  return true;
}

}  // namespace gradwire
