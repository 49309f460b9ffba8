// The system call that sends a message from several places of memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <sys/socket.h>
#include <sys/uio.h>

namespace gradwire {

// Sends bytes from the front of the segments without waiting. Returns their number, or -1 with errno set.
inline ssize_t send_segments(int fd, std::span<const std::span<const std::byte>> segments) {
  constexpr std::size_t kMostSegments = 16;
  std::array<iovec, kMostSegments> vectors;
  const std::size_t count = std::min(segments.size(), kMostSegments);
  for (std::size_t k = 0; k < count; ++k)
    vectors[k] = {const_cast<std::byte*>(segments[k].data()), segments[k].size()};
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = count;
  return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace gradwire
