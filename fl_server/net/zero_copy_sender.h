// Memory that the operating system sends from where it lies (MSG_ZEROCOPY), and that must not change
// meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <sys/types.h>

namespace gradwire {

// Of one TCP socket. The system says on the socket's error queue, in order of sending or nearly so, what it
// no longer needs.
class ZeroCopySender {
 public:
  // Null where the system has no such thing for this socket.
  static std::unique_ptr<ZeroCopySender> of(int fd);

  // As send() with MSG_DONTWAIT. Holds `owner` until the system no longer needs the bytes; where it takes no
  // more memory at present, it copies them.
  ssize_t send(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner);
  // Lets go of what the system no longer needs.
  void take_back();

  bool empty() const { return owners_.empty(); }
  // False: the system has copied what it was lent, as it does where the peer is on the same machine.
  bool saves_copies() const { return saves_copies_; }

 private:
  explicit ZeroCopySender(int fd) : fd_(fd) {}
  void end(std::uint32_t first, std::uint32_t last);

  const int fd_;
  // By number of the call, of those from first_ on; null: ended, but one before has not.
  std::deque<std::shared_ptr<const void>> owners_;
  std::uint32_t first_ = 0;  // the system counts calls in 32 bits
  bool saves_copies_ = true;
};

}  // namespace gradwire
