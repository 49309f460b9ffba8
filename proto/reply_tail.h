// The rest of a reply whose connection broke: what came is not sent again.
//
// The server says in its next request how many bytes of the payload it has (Round.have_bytes, whole chunks);
// the client answers with the same header, the field from_byte behind it, and the payload from there. The
// checksum of the whole payload came with its first prefix, so another payload is noticed at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "proto/codec.h"

namespace gradwire {

inline constexpr std::uint64_t kChunkBytes = 64 * 1024;

// `reply` from byte `from` of its payload on. Views reply's sections. REQUIRES: from < bytes of its payload.
Encoded reply_tail(const Encoded& reply, std::uint64_t from);

// The from_byte of a header that is `whole` but for that; nothing: it is not.
std::optional<std::uint64_t> tail_start(std::span<const std::byte> header, std::span<const std::byte> whole);

// What is left of `targets` after their first `from` bytes. REQUIRES: they have as many.
std::vector<std::span<std::byte>> rest_of(std::span<const std::span<std::byte>> targets, std::uint64_t from);

}  // namespace gradwire
