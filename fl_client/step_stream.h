// The bytes of a connection that never blocks, with or without TLS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "proto/security/stream_filter.h"

namespace gradwire {

class StepStream {
 public:
  // Takes a connected, non-blocking socket and closes it at the end. Without `filter` the bytes are plain.
  StepStream(int fd, std::unique_ptr<StreamFilter> filter);
  ~StepStream();
  StepStream(const StepStream&) = delete;
  StepStream& operator=(const StepStream&) = delete;

  int fd() const { return fd_; }
  // Goes on with the handshake of TLS. Returns whether it is complete.
  Result<bool> agree();
  // Reads some bytes. Returns 0 if none have arrived. Errors mean that the connection is lost.
  Result<std::size_t> read(std::span<std::byte> to);
  // Takes some bytes to send, from the front of the segments. Returns 0 if none can be taken now.
  Result<std::size_t> write(std::span<const std::span<const std::byte>> segments);
  // Sends what TLS still holds.
  Status flush();
  // Returns whether bytes wait to be sent, so that the socket must become writable first.
  bool is_full() const { return is_full_; }

  std::uint64_t bytes_up() const { return bytes_up_; }
  std::uint64_t bytes_down() const { return bytes_down_; }

 private:
  Result<std::size_t> receive(std::span<std::byte> to);
  Result<std::size_t> send(std::span<const std::span<const std::byte>> segments);

  const int fd_;
  const std::unique_ptr<StreamFilter> filter_;
  std::vector<std::byte> arrived_;  // for the filter
  bool is_full_ = false;
  std::uint64_t bytes_up_ = 0, bytes_down_ = 0;
};

}  // namespace gradwire
