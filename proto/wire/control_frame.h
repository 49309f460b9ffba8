// Frames without a payload: the handshake, errors, heartbeats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "proto/wire/frame.h"
#include "proto/wire/wire_message.h"

namespace gradwire {

// Returns prefix and header, ready to write. Throws std::length_error if the header exceeds kMaxHeaderBytes.
std::string control_frame(FrameType type, const WireMessage& header);
std::string heartbeat_frame();
// Limits the interval that a server asks for to 10 ms .. 10 minutes.
std::uint32_t limited_heartbeat_ms(std::uint32_t heartbeat_ms);
std::string error_frame(const std::string& message, bool fatal, std::uint32_t retry_after_ms);

// Writes the number of a channel into consecutive control frames. REQUIRES: the frames are complete, except
// that the payload of the last one may be missing.
std::string on_channel(std::string frames, std::uint32_t channel);

// Reads the header of a control frame from a peer.
Status parse_control(std::span<const std::byte> header, WireMessage& message);

// Makes text from a peer safe for a log or a terminal: one line of bounded length, without control
// characters.
std::string one_line(std::string_view text);

}  // namespace gradwire
