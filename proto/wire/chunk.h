// Replies that come in chunks: while a client still computes, it sends what is final of the payload.
//
// A Piece is a frame of its own: it says the request id, its place in the payload and how long that is, and
// has a checksum. Chunks come in any order and do not overlap. The Reply that ends them has the header that
// it always has, the field in_pieces behind it, and the bytes between the chunks as its payload; its checksum
// is that of the whole payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/byte_buffer.h"
#include "proto/wire/codec.h"

namespace gradwire {

inline constexpr std::uint64_t kLeastChunkBytes = 4096;  // shorter ones are refused

struct ChunkHeader {
  std::uint64_t request_id = 0, at = 0, total = 0;
};
Result<ChunkHeader> read_chunk(std::span<const std::byte> header);
// Views `bytes`, which have the checksum `crc`.
Encoded encode_chunk(const ChunkHeader& head, std::span<const std::byte> bytes, std::uint32_t crc);

// Bytes [at, at + bytes) of a payload.
struct ChunkRange {
  std::uint64_t at = 0, bytes = 0;
};

// `reply` without the ranges that came in chunks, ascending. Views reply's sections.
Encoded reply_without(const Encoded& reply, std::span<const ChunkRange> came);

// The header of a Reply that ends with in_pieces: its value, and the header without it. Nothing: it has no
// such end.
struct ChunkedHeader {
  std::span<const std::byte> header;
  std::uint64_t in_pieces = 0;
};
std::optional<ChunkedHeader> chunked_header(std::span<const std::byte> header);

// The chunks of one client's next reply, as they come in. Has no more memory than the payload's length.
class Assembly {
 public:
  // A chunk arrives: where its bytes go. A chunk of a newer request id begins anew. An error: no honest
  // client sends it; nothing was allocated.
  Result<std::span<const std::span<std::byte>>> prepare(const ChunkHeader& head, const Prefix& prefix,
                                                        std::uint64_t max_payload);
  // The chunk that was prepared is there.
  Status finish();

  std::uint64_t request_id() const { return request_id_; }
  std::uint64_t total() const { return total_; }
  std::uint64_t came() const { return came_; }  // bytes, in whole chunks
  // Copies what came to its place in `targets`, and returns the rest of them. REQUIRES: they have total()
  // bytes.
  std::vector<std::span<std::byte>> spread(std::span<const std::span<std::byte>> targets) const;
  // Forgets it all and frees the memory.
  void clear();

 private:
  std::uint64_t request_id_ = 0, total_ = 0, came_ = 0;
  ByteBuffer payload_;
  std::span<std::byte> bytes_;                   // of payload_
  std::map<std::uint64_t, std::uint64_t> have_;  // from the first byte of a run to its end; runs do not touch
  ChunkRange arriving_;                          // no bytes: none is
  std::span<std::byte> place_;                   // of the arriving one
  std::uint32_t crc_ = 0;                        // that it is to have
};

}  // namespace gradwire
