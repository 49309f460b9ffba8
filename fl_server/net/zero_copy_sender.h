// Zero-copy sends (MSG_ZEROCOPY): the kernel sends from the caller's memory, which must not change meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <sys/types.h>

namespace gradwire {

// Tracks zero-copy sends on one TCP socket. The kernel reports completions on the error queue, mostly in send
// order.
class ZeroCopySender {
 public:
  // Returns null if the kernel does not support zero-copy sends for this socket.
  static std::unique_ptr<ZeroCopySender> of(int fd);

  // Sends like send() with MSG_DONTWAIT. Holds `owner` until the kernel no longer needs the bytes. Copies
  // them if the kernel cannot pin more memory now.
  ssize_t send(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner);
  // Releases the memory that the kernel no longer needs.
  void take_back();

  bool empty() const { return owners_.empty(); }
  // Returns false if the kernel copied the bytes after all, as it does for a peer on the same machine.
  bool saves_copies() const { return saves_copies_; }

 private:
  explicit ZeroCopySender(int fd) : fd_(fd) {}
  void end(std::uint32_t first, std::uint32_t last);

  const int fd_;
  // The owners by call, from call first_ on. Null if the call has ended and an earlier one has not.
  std::deque<std::shared_ptr<const void>> owners_;
  std::uint32_t first_ = 0;  // the kernel counts calls in 32 bits
  bool saves_copies_ = true;
};

}  // namespace gradwire
