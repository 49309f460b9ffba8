// Replies that arrive in chunks: while a client still computes, it sends the bytes of the payload that are
// final.
//
// A chunk is a frame of its own; its header is a Piece. It has the request id, its position in the payload,
// the payload's length, and a checksum. Chunks come in any order and do not overlap. The Reply that follows
// has its usual header, then the field in_pieces, and as payload the bytes that no chunk carried; its
// checksum covers the whole payload.
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

inline constexpr std::uint64_t kLeastChunkBytes = 4096;  // shorter chunks are refused

struct ChunkHeader {
  std::uint64_t request_id = 0, at = 0, total = 0;
};
Result<ChunkHeader> read_chunk(std::span<const std::byte> header);
// Encodes a chunk of `bytes`, whose checksum is `crc`. The result views `bytes`.
Encoded encode_chunk(const ChunkHeader& head, std::span<const std::byte> bytes, std::uint32_t crc);

// The bytes [at, at + bytes) of a payload.
struct ChunkRange {
  std::uint64_t at = 0, bytes = 0;
};

// Returns `reply` without the bytes that came in chunks. The ranges in `came` ascend. The result views
// reply's sections.
Encoded reply_without(const Encoded& reply, std::span<const ChunkRange> came);

// The header of a Reply that ends with in_pieces, split into the header without that field and the value of
// that field.
struct ChunkedHeader {
  std::span<const std::byte> header;
  std::uint64_t in_chunks = 0;
};
std::optional<ChunkedHeader> chunked_header(std::span<const std::byte> header);

// Collects the chunks of one client's next reply. Its memory is at most the payload's length.
class Assembly {
 public:
  // Returns where the bytes of an arriving chunk go. A chunk for a newer request id discards the chunks of
  // the older one. Fails on chunks that a correct client never sends, and then allocates nothing.
  Result<std::span<const std::span<std::byte>>> prepare(const ChunkHeader& head, const Prefix& prefix,
                                                        std::uint64_t max_payload);
  // Completes the prepared chunk.
  Status finish();

  std::uint64_t request_id() const { return request_id_; }
  std::uint64_t total() const { return total_; }
  std::uint64_t came() const { return came_; }  // bytes received, in whole chunks
  // Copies the received bytes to their places in `targets`, and returns the remaining places. REQUIRES:
  // `targets` have total() bytes.
  std::vector<std::span<std::byte>> spread(std::span<const std::span<std::byte>> targets) const;
  // Drops all chunks and frees the memory.
  void clear();

 private:
  std::uint64_t request_id_ = 0, total_ = 0, came_ = 0;
  ByteBuffer payload_;
  std::span<std::byte> bytes_;                   // the bytes of payload_
  std::map<std::uint64_t, std::uint64_t> have_;  // received runs: first byte -> end; runs do not touch
  ChunkRange arriving_;                          // empty if no chunk is arriving
  std::span<std::byte> place_;                   // target of the arriving chunk
  std::uint32_t crc_ = 0;                        // expected checksum of the arriving chunk
};

}  // namespace gradwire
