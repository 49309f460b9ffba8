#include "proto/wire/frame.h"

#include <algorithm>
#include <string>

#include "base/crc32c.h"

namespace gradwire {
namespace {

constexpr std::size_t kHeaderCrcOffset = 12, kChannelOffset = 28;

template <class T>
void store(std::byte* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

template <class T>
T load(const std::byte* from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(from[i]) << (8 * i));
  return value;
}

std::uint32_t header_crc(std::span<const std::byte, kPrefixBytes> prefix, std::span<const std::byte> header) {
  std::array<std::byte, kPrefixBytes> zeroed;
  std::copy(prefix.begin(), prefix.end(), zeroed.begin());
  store<std::uint32_t>(&zeroed[kHeaderCrcOffset], 0);
  return crc32c(header, crc32c(zeroed));
}

}  // namespace

bool has_magic(std::span<const std::byte> bytes) { return load<std::uint32_t>(bytes.data()) == kMagic; }

std::array<std::byte, kPrefixBytes> write_prefix(FrameType type, std::span<const std::byte> header,
                                                 std::uint64_t payload_len, std::uint32_t payload_crc,
                                                 std::uint32_t channel) {
  std::array<std::byte, kPrefixBytes> p{};
  store<std::uint32_t>(&p[0], kMagic);
  p[4] = static_cast<std::byte>(kWireVersion);
  p[5] = static_cast<std::byte>(type);
  store<std::uint32_t>(&p[8], static_cast<std::uint32_t>(header.size()));
  store<std::uint64_t>(&p[16], payload_len);
  store<std::uint32_t>(&p[24], payload_crc);
  store<std::uint32_t>(&p[kChannelOffset], channel);
  store<std::uint32_t>(&p[kHeaderCrcOffset], header_crc(p, header));
  return p;
}

Result<Prefix> read_prefix(std::span<const std::byte, kPrefixBytes> bytes, std::uint64_t max_payload_bytes,
                           bool channels) {
  const std::byte* p = bytes.data();
  if (load<std::uint32_t>(p) != kMagic) return Error{"the peer does not speak gradwire (wrong magic number)"};
  if (const auto version = load<std::uint8_t>(p + 4); version != kWireVersion) {
    return Error{"the peer speaks version " + std::to_string(version) + " of the protocol, this program " +
                 std::to_string(kWireVersion) + ": install the same release on both"};
  }
  const auto type = load<std::uint8_t>(p + 5);
  if (type < static_cast<std::uint8_t>(FrameType::kHello) ||
      type > static_cast<std::uint8_t>(FrameType::kProof)) {
    return Error{"unknown message type " + std::to_string(type)};
  }
  Prefix prefix;
  prefix.channel = load<std::uint32_t>(p + kChannelOffset);
  if (load<std::uint16_t>(p + 6) != 0 || (prefix.channel != 0 && !channels))
    return Error{"a reserved field is not zero"};
  prefix.type = static_cast<FrameType>(type);
  prefix.header_len = load<std::uint32_t>(p + 8);
  prefix.header_crc = load<std::uint32_t>(p + kHeaderCrcOffset);
  prefix.payload_len = load<std::uint64_t>(p + 16);
  prefix.payload_crc = load<std::uint32_t>(p + 24);
  if (prefix.header_len > kMaxHeaderBytes) {
    return Error{"a header of " + std::to_string(prefix.header_len) + " bytes is above the limit of " +
                 std::to_string(kMaxHeaderBytes)};
  }
  if (prefix.payload_len > max_payload_bytes) {
    return Error{"a payload of " + std::to_string(prefix.payload_len) + " bytes is above the limit of " +
                 std::to_string(max_payload_bytes)};
  }
  return prefix;
}

Status check_header(std::span<const std::byte, kPrefixBytes> prefix, std::span<const std::byte> header) {
  if (load<std::uint32_t>(&prefix[8]) != header.size())
    return Error{"the header's length differs from its prefix"};
  if (load<std::uint32_t>(&prefix[kHeaderCrcOffset]) != header_crc(prefix, header)) {
    return Error{"the header is damaged (wrong checksum)"};
  }
  return Unit{};
}

}  // namespace gradwire
