// What stands between a connection's bytes and its frames: bytes in, bytes out; no socket, no clock. TLS is
// one; a board may bring a smaller library.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace gradwire {

class StreamFilter {
 public:
  virtual ~StreamFilter() = default;

  // Takes bytes as they came from the peer. After an error nothing more can be read or written; what
  // outgoing() has tells the peer why.
  virtual Status feed(std::span<const std::byte> arrived) = 0;
  // Bytes that the peer wrote, at most to.size(); 0: none until more is fed.
  virtual Result<std::size_t> read(std::span<std::byte> to) = 0;
  // There is something to read().
  virtual bool has_plain() const = 0;
  // Takes these bytes for the peer. REQUIRES: ready(), and end() was not called.
  virtual Status write(std::span<const std::byte> plain) = 0;
  // Tells the peer that nothing follows.
  virtual void end() = 0;

  // Bytes to be sent to the peer as they are, and how many of them were sent.
  virtual std::span<const std::byte> outgoing() const = 0;
  virtual void sent(std::size_t bytes) = 0;

  // Both ends know each other; before that, nothing can be written.
  virtual bool ready() const = 0;
};

}  // namespace gradwire
