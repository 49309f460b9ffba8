// The rest of a reply whose connection broke. The client does not send again what has arrived.
//
// The server's next request says how many bytes of the payload the server has (Round.have_bytes, whole
// chunks). The client answers with the same header, then the field from_byte, and the payload from that byte
// on. The checksum of the whole payload came with the first prefix, so the server detects a different payload
// at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "proto/wire/codec.h"

namespace gradwire {

inline constexpr std::uint64_t kChunkBytes = 64 * 1024;

// Returns `reply` from byte `from` of its payload on. Views reply's sections. REQUIRES: from < bytes of its
// payload.
Encoded reply_tail(const Encoded& reply, std::uint64_t from);

// Returns the from_byte of a header that otherwise equals `whole`, or nullopt if it differs.
std::optional<std::uint64_t> tail_start(std::span<const std::byte> header, std::span<const std::byte> whole);

// Returns the rest of `targets` after their first `from` bytes. REQUIRES: they have at least `from` bytes.
std::vector<std::span<std::byte>> rest_of(std::span<const std::span<std::byte>> targets, std::uint64_t from);

}  // namespace gradwire
