// The frames of one peer, in and out, as a session sees them. A link is a socket of its own (Connection) or a
// channel of a relay (MuxChannel).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "fl_server/net/socket_layer.h"
#include "fl_server/net/write_queue.h"
#include "proto/wire/frame.h"

namespace gradwire {

// Callbacks of a link. A returned error closes the link with an ErrorMessage.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  // Receives a header whose checksum is right, and returns where to store the payload. If no place is
  // returned, the payload is discarded and on_frame() is not called.
  virtual Result<std::span<const std::span<std::byte>>> on_header(const Prefix& prefix,
                                                                  std::span<const std::byte> header) = 0;
  // Receives the frame once its whole payload is stored.
  virtual Status on_frame() = 0;
  // Reports that the peer broke the protocol and is about to be refused. Returns the length of its ban in
  // milliseconds, or 0 if it is not banned.
  virtual std::uint32_t on_misbehaviour() { return 0; }
  // Reports that the link closed. Never called from inside another call; only on_shut() follows.
  virtual void on_closed(const std::string& why) = 0;
  // Reports, after on_closed(), that the link has finished: a refusal was sent or given up. No callback
  // follows. The link may be destroyed, even inside this call.
  virtual void on_shut() = 0;
};

class FrameLink {
 public:
  virtual ~FrameLink() = default;
  virtual void start() = 0;

  virtual const std::string& peer() const = 0;  // ADDRESS:PORT
  virtual bool open() const = 0;

  virtual void set_max_payload(std::uint64_t bytes) = 0;  // 0 until set
  // Writes as much as the peer accepts now, and the rest as soon as possible.
  virtual void send(Outgoing message) = 0;
  // Writes a control frame together with the next message, or at the next check_time(). It is lost if another
  // message replaces that message.
  virtual void send_soon(const std::string& frame) = 0;
  static constexpr std::size_t kMostSoon = 4096;  // bytes of such frames
  virtual void own_sections() = 0;                // copies the buffers that waiting messages view
  virtual bool ending() const = 0;                // true after a message with `last` was sent

  // Returns the number of stored bytes of the arriving payload, or 0 if no payload is arriving.
  virtual std::uint64_t payload_received() const = 0;
  // Discards the rest of an arriving payload, because its buffer no longer exists.
  virtual void skip_payload() = 0;

  // Sends the reason to the peer and closes the link. on_closed() follows.
  virtual void refuse(const std::string& message, bool fatal, std::uint32_t retry_after_ms) = 0;
  virtual void close(const std::string& why) = 0;

  // Starts heartbeats at both ends.
  virtual void expect_heartbeats() = 0;
  // Closes the link if the peer is too slow, and sends heartbeats. Must be called periodically.
  virtual void check_time(SteadyTime now) = 0;
};

}  // namespace gradwire
