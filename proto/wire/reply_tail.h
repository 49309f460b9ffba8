// The rest of a reply whose connection broke: the client does not send again what has arrived.
//
// The server says in its next request how many bytes of the payload it has (Round.have_bytes, whole chunks);
// the client answers with the same header, the field from_byte after it, and the payload from that byte on.
// The checksum of the whole payload came with its first prefix, so the server notices another payload at the
// end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "proto/wire/codec.h"

namespace gradwire {

inline constexpr std::uint64_t kChunkBytes = 64 * 1024;

// `reply` from byte `from` of its payload on. Views reply's sections. REQUIRES: from < bytes of its payload.
Encoded reply_tail(const Encoded& reply, std::uint64_t from);

// The from_byte of a header that equals `whole` except for this field; nothing: the header differs.
std::optional<std::uint64_t> tail_start(std::span<const std::byte> header, std::span<const std::byte> whole);

// What is left of `targets` after their first `from` bytes. REQUIRES: they have as many.
std::vector<std::span<std::byte>> rest_of(std::span<const std::span<std::byte>> targets, std::uint64_t from);

}  // namespace gradwire
