// The 32-byte little-endian prefix in front of every message (docs/reference/wire.md). Bytes in, numbers out;
// no I/O.
//
//   offset  field            rule
//   0       magic u32        "GWR1"; wrong: close without an answer
//   4       version u8, type u8, reserved u16 (zero)
//   8       header_len u32   <= kMaxHeaderBytes, checked before any allocation
//   12      header_crc u32   CRC32C over the prefix (with this field zero) and the header
//   16      payload_len u64  <= the limit agreed for this connection, checked before any allocation
//   24      payload_crc u32  CRC32C of the payload as sent
//   28      channel u32      the client's channel, between a server and a relay; else zero
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace gradwire {

inline constexpr std::uint32_t kMagic = 0x31525747;  // "GWR1"
inline constexpr std::uint8_t kWireVersion = 2;
inline constexpr std::size_t kPrefixBytes = 32;
inline constexpr std::uint32_t kMaxHeaderBytes = 64 * 1024;

enum class FrameType : std::uint8_t {
  kHello = 1,       // client -> server: the client's name
  kWelcome = 2,     // server -> client: the experiment, the client's number
  kJoin = 3,        // client -> server: summary of the client's data
  kStart = 4,       // server -> client: the agreed data schema; rounds follow
  kRound = 5,       // server -> client: a Request
  kReply = 6,       // client -> server: an Uplink
  kError = 7,       // either way: one line, then close
  kHeartbeat = 8,   // either way: the sender is alive
  kReceived = 9,    // server -> client: the fate of a reply; client -> server: acknowledges the shutdown
  kRelay = 10,      // either way: this connection carries the clients of a site, each as a channel
  kChunk = 11,      // client -> server: bytes of the payload of a reply that is still to come
  kChallenge = 12,  // server -> client: a nonce to sign
  kProof = 13,      // client -> server: the signature
};

struct Prefix {
  FrameType type = FrameType::kError;
  std::uint32_t header_len = 0;
  std::uint32_t header_crc = 0;
  std::uint64_t payload_len = 0;
  std::uint32_t payload_crc = 0;
  std::uint32_t channel = 0;
};

// Returns whether a stream begins with the magic number of this protocol. REQUIRES: at least 4 bytes.
bool has_magic(std::span<const std::byte> bytes);

// Writes the prefix of a message; fills in the header's checksum.
std::array<std::byte, kPrefixBytes> write_prefix(FrameType type, std::span<const std::byte> header,
                                                 std::uint64_t payload_len, std::uint32_t payload_crc,
                                                 std::uint32_t channel = 0);

// Reads a prefix: checks magic, version, type, reserved fields and both limits. Allocates nothing. `channels`
// allows messages of a channel.
Result<Prefix> read_prefix(std::span<const std::byte, kPrefixBytes> bytes, std::uint64_t max_payload_bytes,
                           bool channels = false);

// Checks the header against the checksum of the prefix it came with.
Status check_header(std::span<const std::byte, kPrefixBytes> prefix, std::span<const std::byte> header);

}  // namespace gradwire
