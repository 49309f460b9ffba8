// Frames that a relay forwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fl_server/net/write_queue.h"
#include "proto/wire/frame.h"

namespace gradwire {

// A frame that is received whole before it is forwarded.
struct ForwardedFrame {
  Prefix prefix;
  std::string header;
  std::shared_ptr<std::byte[]> payload;  // prefix.payload_len bytes
  std::span<std::byte> place;

  std::span<const std::span<std::byte>> begin(const Prefix& p, std::span<const std::byte> h) {
    prefix = p;
    header.assign(reinterpret_cast<const char*>(h.data()), h.size());
    // Not filled with zeros: a payload that is announced but never arrives costs no memory.
    payload = std::make_shared_for_overwrite<std::byte[]>(p.payload_len);
    place = {payload.get(), p.payload_len};
    return std::span(&place, 1);
  }
  Outgoing for_channel(std::uint32_t channel) const {
    const auto bytes = std::as_bytes(std::span(header));
    const auto raw = write_prefix(prefix.type, bytes, prefix.payload_len, prefix.payload_crc, channel);
    Outgoing message;
    message.head.assign(reinterpret_cast<const char*>(raw.data()), raw.size());
    message.head += header;
    if (prefix.payload_len > 0) message.sections.push_back({payload.get(), prefix.payload_len});
    message.keep = payload;
    return message;
  }
  std::uint64_t bytes() const { return kPrefixBytes + header.size() + prefix.payload_len; }
};

}  // namespace gradwire
