// Walks over the fields of a serialized message before protobuf parses bytes from a peer. Protobuf trusts the
// length of an embedded message even if it exceeds the message around it. It then reserves up to 50 MB for a
// string inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace gradwire {

// Takes a varint from the front. Returns false if it does not end.
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

// One field of a message.
struct WireField {
  int number = 0;
  std::size_t bytes = 0;  // with its tag
  bool has_length = false;
  std::span<const std::byte> content;  // meaningful if has_length
};

// Returns the first field of a message. Returns nullopt if it does not end within `message`, or if it is a
// group, which this protocol never uses.
inline std::optional<WireField> first_field(std::span<const std::byte> message) {
  std::span<const std::byte> left = message;
  std::uint64_t tag = 0, value = 0;
  if (!take_varint(left, tag) || tag > 0xFFFFFFFF) return std::nullopt;
  enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };
  const bool has_length = (tag & 7) == kLength;
  switch (tag & 7) {
    case kVarint:
    case kLength:
      if (!take_varint(left, value)) return std::nullopt;
      if (!has_length) value = 0;
      break;
    case kFixed64: value = 8; break;
    case kFixed32: value = 4; break;
    default: return std::nullopt;
  }
  if (value > left.size()) return std::nullopt;
  const std::size_t bytes = message.size() - left.size() + static_cast<std::size_t>(value);
  return WireField{static_cast<int>(tag >> 3), bytes, has_length,
                   left.first(static_cast<std::size_t>(value))};
}

// Returns whether all fields end within `message`, and inner(number, content) is true for each one with a
// length.
template <class Inner>
bool fields_fit(std::span<const std::byte> message, Inner inner) {
  while (!message.empty()) {
    const std::optional<WireField> field = first_field(message);
    if (!field || (field->has_length && !inner(field->number, field->content))) return false;
    message = message.subspan(field->bytes);
  }
  return true;
}

}  // namespace gradwire
