#include "proto/wire/control_frame.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/printable.h"
#include "proto/wire/wire.pb.h"
#include "proto/wire/wire_fields.h"

namespace gradwire {
namespace {

constexpr std::size_t kLongestLine = 500;

std::string frame(FrameType type, const std::string& header) {
  if (header.size() > kMaxHeaderBytes) {
    throw std::length_error("a message of the handshake has " + std::to_string(header.size()) +
                            " bytes, above the limit of " + std::to_string(kMaxHeaderBytes) +
                            "; shorten the experiment, or use fewer labels");
  }
  const auto prefix = write_prefix(type, std::as_bytes(std::span(header)), 0, 0);
  std::string bytes(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  return bytes + header;
}

}  // namespace

std::string control_frame(FrameType type, const WireMessage& header) {
  return frame(type, header.SerializeAsString());
}

std::string heartbeat_frame() { return frame(FrameType::kHeartbeat, ""); }

std::uint32_t limited_heartbeat_ms(std::uint32_t heartbeat_ms) {
  return std::clamp(heartbeat_ms, 10u, 10 * 60'000u);
}

std::string error_frame(const std::string& message, bool fatal, std::uint32_t retry_after_ms) {
  wire::ErrorMessage error;
  error.set_message(one_line(message));
  error.set_fatal(fatal);
  error.set_retry_after_ms(retry_after_ms);
  return control_frame(FrameType::kError, error);
}

std::string on_channel(std::string frames, std::uint32_t channel) {
  for (std::size_t at = 0; at + kPrefixBytes <= frames.size();) {
    const auto bytes = std::as_bytes(std::span(frames)).subspan(at);
    const auto prefix = read_prefix(bytes.first<kPrefixBytes>(), UINT64_MAX, true);
    if (!prefix) throw std::logic_error("on_channel: " + prefix.error().message);
    const auto header = bytes.subspan(kPrefixBytes, prefix->header_len);
    const auto raw = write_prefix(prefix->type, header, prefix->payload_len, prefix->payload_crc, channel);
    std::memcpy(frames.data() + at, raw.data(), raw.size());
    at += kPrefixBytes + prefix->header_len;
  }
  return frames;
}

Status parse_control(std::span<const std::byte> header, WireMessage& message) {
  const bool fits = fields_fit(header, [](int, std::span<const std::byte>) { return true; });
  if (!fits || !message.ParseFromArray(header.data(), static_cast<int>(header.size())))
    return Error{"the header is damaged"};
  return Unit{};
}

std::string one_line(std::string_view text) { return printable(text, kLongestLine); }

}  // namespace gradwire
