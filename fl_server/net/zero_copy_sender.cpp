#include "fl_server/net/zero_copy_sender.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace gradwire {
namespace {

// Returns the completion report in a control message, or null if the control message is something else.
const sock_extended_err* zerocopy_note(const cmsghdr& part) {
  const bool of_ip = (part.cmsg_level == SOL_IP && part.cmsg_type == IP_RECVERR) ||
                     (part.cmsg_level == SOL_IPV6 && part.cmsg_type == IPV6_RECVERR);
  if (!of_ip || part.cmsg_len < CMSG_LEN(sizeof(sock_extended_err))) return nullptr;
  const auto* note = reinterpret_cast<const sock_extended_err*>(CMSG_DATA(&part));
  return note->ee_errno == 0 && note->ee_origin == SO_EE_ORIGIN_ZEROCOPY ? note : nullptr;
}

}  // namespace

std::unique_ptr<ZeroCopySender> ZeroCopySender::of(int fd) {
  const int yes = 1;
  if (::setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &yes, sizeof yes) != 0) return nullptr;
  return std::unique_ptr<ZeroCopySender>(new ZeroCopySender(fd));
}

ssize_t ZeroCopySender::send(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner) {
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  owners_.push_back(owner);  // before the send, because this may run out of memory
  const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), kFlags | MSG_ZEROCOPY);
  if (sent > 0) return sent;
  owners_.pop_back();
  const bool may_copy = sent < 0 && errno == ENOBUFS;
  return may_copy ? ::send(fd_, bytes.data(), bytes.size(), kFlags) : sent;
}

void ZeroCopySender::take_back() {
  while (!owners_.empty()) {
    alignas(cmsghdr) std::array<char, 256> parts;
    msghdr message{};
    message.msg_control = parts.data();
    message.msg_controllen = parts.size();
    if (::recvmsg(fd_, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
      const sock_extended_err* const note = zerocopy_note(*part);
      if (note == nullptr) continue;
      if ((note->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0) saves_copies_ = false;
      end(note->ee_info, note->ee_data);
    }
  }
}

// Marks calls `first` to `last` as completed.
void ZeroCopySender::end(std::uint32_t first, std::uint32_t last) {
  const std::uint32_t begin = first - first_, count = last - first + 1;
  for (std::uint32_t k = begin; k - begin < count && k < owners_.size(); ++k) owners_[k].reset();
  for (; !owners_.empty() && owners_.front() == nullptr; owners_.pop_front()) ++first_;
}

}  // namespace gradwire
