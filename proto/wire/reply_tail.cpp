#include "proto/wire/reply_tail.h"

#include <algorithm>

#include "base/crc32c.h"
#include "proto/wire/little_endian.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

// The last field of a Reply: one byte of tag and eight of value.
constexpr std::byte kTag{wire::Reply::kFromByteFieldNumber << 3 | 1};
constexpr std::size_t kFieldBytes = 9;

}  // namespace

Encoded reply_tail(const Encoded& reply, std::uint64_t from) {
  Encoded tail;
  tail.header = reply.header;
  wire::Reply last;
  last.set_from_byte(from);
  last.AppendToString(&tail.header);
  std::uint64_t length = 0, skip = from;
  std::uint32_t crc = 0;
  for (const std::span<const std::byte> section : reply.sections) {
    const auto gone = static_cast<std::size_t>(std::min<std::uint64_t>(skip, section.size()));
    skip -= gone;
    if (gone == section.size()) continue;
    tail.sections.push_back(section.subspan(gone));
    length += tail.sections.back().size();
    crc = crc32c(tail.sections.back(), crc);
  }
  tail.prefix = write_prefix(FrameType::kReply, std::as_bytes(std::span(tail.header)), length, crc);
  tail.bytes = kPrefixBytes + tail.header.size() + length;
  return tail;
}

std::optional<std::uint64_t> tail_start(std::span<const std::byte> header, std::span<const std::byte> whole) {
  if (whole.empty() || header.size() != whole.size() + kFieldBytes || header[whole.size()] != kTag ||
      !std::equal(whole.begin(), whole.end(), header.begin()))
    return std::nullopt;
  const auto* const text = reinterpret_cast<const char*>(header.data());
  return get<std::uint64_t>({text, header.size()}, whole.size() + 1);
}

std::vector<std::span<std::byte>> rest_of(std::span<const std::span<std::byte>> targets, std::uint64_t from) {
  std::vector<std::span<std::byte>> rest;
  for (const std::span<std::byte> target : targets) {
    const auto gone = static_cast<std::size_t>(std::min<std::uint64_t>(from, target.size()));
    from -= gone;
    if (gone < target.size()) rest.push_back(target.subspan(gone));
  }
  return rest;
}

}  // namespace gradwire
