// The layer between the bytes of a connection and its frames: bytes in, bytes out, without socket and clock.
// TLS is the implementation, with one of two libraries.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace gradwire {

class StreamFilter {
 public:
  virtual ~StreamFilter() = default;

  // Takes bytes as received from the peer. After an error nothing more can be read or written; outgoing() may
  // still hold an alert for the peer.
  virtual Status feed(std::span<const std::byte> arrived) = 0;
  // Reads bytes that the peer wrote, at most to.size(). Returns 0 if more must be fed first.
  virtual Result<std::size_t> read(std::span<std::byte> to) = 0;
  // Returns whether read() has data.
  virtual bool has_plain() const = 0;
  // Takes bytes for the peer. REQUIRES: ready(), and end() was not called.
  virtual Status write(std::span<const std::byte> plain) = 0;
  // Tells the peer that no more bytes follow.
  virtual void end() = 0;

  // Returns the bytes to send to the peer unchanged; sent() removes the bytes that were sent.
  virtual std::span<const std::byte> outgoing() const = 0;
  virtual void sent(std::size_t bytes) = 0;

  // Returns whether the handshake is complete; nothing can be written before.
  virtual bool ready() const = 0;
};

}  // namespace gradwire
