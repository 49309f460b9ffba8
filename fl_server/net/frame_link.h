// One peer's frames, in and out, as a session sees them: over a socket of its own (Connection), or as a
// channel of a relay's (MuxChannel).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "fl_server/net/socket_layer.h"
#include "fl_server/net/write_queue.h"
#include "proto/wire/frame.h"

namespace gradwire {

// What the owner of a link is told. An error returned closes the link with an ErrorMessage.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  // Takes a header whose checksum is right; returns where the payload goes. A payload that goes
  // nowhere is discarded, and on_frame() is not called.
  virtual Result<std::span<const std::span<std::byte>>> on_header(const Prefix& prefix,
                                                                  std::span<const std::byte> header) = 0;
  // The whole payload is where on_header said.
  virtual Status on_frame() = 0;
  // The peer broke the protocol and is about to be refused. Returns for how many milliseconds it is banned
  // from now on; 0: it is not.
  virtual std::uint32_t on_misbehaviour() { return 0; }
  // Never from inside another call; only on_shut() follows.
  virtual void on_closed(const std::string& why) = 0;
  // Nothing is left to do: the link may be destroyed, also from inside this call.
  virtual void on_shut() = 0;
};

class FrameLink {
 public:
  virtual ~FrameLink() = default;
  virtual void start() = 0;

  virtual const std::string& peer() const = 0;  // ADDRESS:PORT
  virtual bool open() const = 0;

  virtual void set_max_payload(std::uint64_t bytes) = 0;  // 0 until set
  // Writes at once what the peer takes, the rest as soon as it can.
  virtual void send(Outgoing message) = 0;
  // Writes a control frame together with the next message, at the latest at the next check_time(). If another
  // message replaces that message, the control frame is lost with it.
  virtual void send_soon(const std::string& frame) = 0;
  static constexpr std::size_t kMostSoon = 4096;  // bytes of such frames
  virtual void own_sections() = 0;                // copies the buffers that waiting messages view
  virtual bool ending() const = 0;                // a message with `last` was sent

  // How many bytes of the arriving payload are where on_header said; 0: none is arriving.
  virtual std::uint64_t payload_received() const = 0;
  // Discards the rest of an arriving payload: the buffer for it no longer exists.
  virtual void skip_payload() = 0;

  // Tells the peer why and closes. on_closed follows.
  virtual void refuse(const std::string& message, bool fatal, std::uint32_t retry_after_ms) = 0;
  virtual void close(const std::string& why) = 0;

  // From now on both ends send heartbeats.
  virtual void expect_heartbeats() = 0;
  // To be called from time to time: closes the link when the peer is too slow, sends heartbeats.
  virtual void check_time(SteadyTime now) = 0;
};

}  // namespace gradwire
