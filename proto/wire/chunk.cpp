#include "proto/wire/chunk.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/little_endian.h"
#include "proto/wire/wire.pb.h"
#include "proto/wire/wire_fields.h"

namespace gradwire {
namespace {

// The last field of a Reply: one byte of tag and eight of value.
constexpr std::byte kInChunksTag{wire::Reply::kInPiecesFieldNumber << 3 | 1};
constexpr std::size_t kInChunksBytes = 9;

// Splits a payload in `sections` where a range begins or ends. Calls f(part, offset in the payload, true if a
// range contains it) for each part, in order. REQUIRES: `ranges` ascend.
template <class Byte, class F>
void split_at(std::span<const std::span<Byte>> sections, std::span<const ChunkRange> ranges, F&& f) {
  std::uint64_t at = 0;  // in the payload
  std::size_t next = 0;  // the first range that does not end before `at`
  for (std::span<Byte> section : sections) {
    while (!section.empty()) {
      while (next < ranges.size() && ranges[next].at + ranges[next].bytes <= at) ++next;
      const bool is_last = next == ranges.size();
      const bool inside = !is_last && ranges[next].at <= at;
      std::uint64_t end = at + section.size();
      if (inside) end = std::min(end, ranges[next].at + ranges[next].bytes);
      if (!inside && !is_last) end = std::min(end, ranges[next].at);
      const auto bytes = static_cast<std::size_t>(end - at);
      f(section.first(bytes), at, inside);
      section = section.subspan(bytes);
      at = end;
    }
  }
}

}  // namespace

Result<ChunkHeader> read_chunk(std::span<const std::byte> header) {
  wire::Piece chunk;
  if (Status status = parse_control(header, chunk); !status) return status.error();
  if (!chunk.has_request_id() || !chunk.has_at_byte() || !chunk.has_total())
    return Error{"Piece: request id, at_byte or total is missing"};
  return ChunkHeader{chunk.request_id(), chunk.at_byte(), chunk.total()};
}

Encoded encode_chunk(const ChunkHeader& head, std::span<const std::byte> bytes, std::uint32_t crc) {
  wire::Piece chunk;
  chunk.set_request_id(head.request_id);
  chunk.set_at_byte(head.at);
  chunk.set_total(head.total);
  Encoded message;
  chunk.SerializeToString(&message.header);
  message.sections = {bytes};
  message.prefix =
      write_prefix(FrameType::kChunk, std::as_bytes(std::span(message.header)), bytes.size(), crc);
  message.bytes = kPrefixBytes + message.header.size() + bytes.size();
  return message;
}

Encoded reply_without(const Encoded& reply, std::span<const ChunkRange> came) {
  Encoded rest;
  rest.header = reply.header;
  std::uint64_t in_chunks = 0, length = 0;
  for (const ChunkRange& range : came) in_chunks += range.bytes;
  wire::Reply last;
  last.set_in_pieces(in_chunks);
  last.AppendToString(&rest.header);
  std::uint32_t crc = 0;
  split_at<const std::byte>(reply.sections, came,
                            [&](std::span<const std::byte> part, std::uint64_t, bool in_chunk) {
                              crc = crc32c(part, crc);
                              if (in_chunk) return;
                              rest.sections.push_back(part);
                              length += part.size();
                            });
  rest.prefix = write_prefix(FrameType::kReply, std::as_bytes(std::span(rest.header)), length, crc);
  rest.bytes = kPrefixBytes + rest.header.size() + length;
  return rest;
}

std::optional<ChunkedHeader> chunked_header(std::span<const std::byte> header) {
  // Walk the fields to find where the last one begins: the tag byte may also occur inside another field.
  std::span<const std::byte> left = header;
  while (left.size() > kInChunksBytes) {
    const std::optional<WireField> field = first_field(left);
    if (!field) return std::nullopt;
    left = left.subspan(field->bytes);
  }
  if (left.size() != kInChunksBytes || left[0] != kInChunksTag) return std::nullopt;
  const auto* const text = reinterpret_cast<const char*>(left.data());
  return ChunkedHeader{header.first(header.size() - kInChunksBytes),
                       get<std::uint64_t>({text, left.size()}, 1)};
}

Result<std::span<const std::span<std::byte>>> Assembly::prepare(const ChunkHeader& head, const Prefix& prefix,
                                                                std::uint64_t max_payload) {
  const std::uint64_t bytes = prefix.payload_len;
  arriving_ = {};
  if (head.total > max_payload)
    return Error{"a chunk of a payload of " + std::to_string(head.total) + " bytes, above the limit of " +
                 std::to_string(max_payload)};
  if (bytes < kLeastChunkBytes) return Error{"a chunk of only " + std::to_string(bytes) + " bytes"};
  if (bytes > head.total || head.at > head.total - bytes) return Error{"a chunk outside its payload"};
  if (head.request_id < request_id_) return Error{"a chunk of an earlier reply than the chunk before it"};
  if (head.request_id == request_id_ && head.total != total_)
    return Error{"chunks of one reply disagree about its length"};
  if (head.request_id > request_id_) {
    clear();
    request_id_ = head.request_id;
    total_ = head.total;
    bytes_ = payload_.take(static_cast<std::size_t>(total_));
  }
  const auto after = have_.upper_bound(head.at);  // the first run that begins after the first byte
  if ((after != have_.end() && after->first < head.at + bytes) ||
      (after != have_.begin() && std::prev(after)->second > head.at))
    return Error{"a chunk of bytes that have already arrived"};
  arriving_ = {head.at, bytes};
  crc_ = prefix.payload_crc;
  place_ = bytes_.subspan(static_cast<std::size_t>(head.at), static_cast<std::size_t>(bytes));
  return std::span<const std::span<std::byte>>(&place_, 1);
}

Status Assembly::finish() {
  const ChunkRange chunk = std::exchange(arriving_, {});
  if (chunk.bytes == 0) return Error{"no chunk was announced"};
  if (crc32c(place_) != crc_) return Error{"a chunk is damaged (wrong checksum)"};
  came_ += chunk.bytes;
  auto run = have_.emplace(chunk.at, chunk.at + chunk.bytes).first;
  if (run != have_.begin() && std::prev(run)->second == chunk.at) {
    const auto before = std::prev(run);
    before->second = run->second;
    have_.erase(run);
    run = before;
  }
  if (const auto after = std::next(run); after != have_.end() && after->first == run->second) {
    run->second = after->second;
    have_.erase(after);
  }
  return Unit{};
}

std::vector<std::span<std::byte>> Assembly::spread(std::span<const std::span<std::byte>> targets) const {
  std::vector<ChunkRange> runs;
  for (const auto& [begin, end] : have_) runs.push_back({begin, end - begin});
  std::vector<std::span<std::byte>> rest;
  split_at<std::byte>(targets, runs, [&](std::span<std::byte> part, std::uint64_t at, bool came) {
    if (!came) return rest.push_back(part);
    const auto from = bytes_.subspan(static_cast<std::size_t>(at), part.size());
    std::copy(from.begin(), from.end(), part.begin());
  });
  return rest;
}

void Assembly::clear() {
  request_id_ = total_ = came_ = 0;
  have_.clear();
  arriving_ = {};
  bytes_ = place_ = {};
  payload_ = {};
}

}  // namespace gradwire
