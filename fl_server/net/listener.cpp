#include "fl_server/net/listener.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire/address.h"

namespace gradwire {
namespace {

constexpr int kBacklog = 1024;

int open_spare() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

int listen_on(const addrinfo& where) {
  const int fd = ::socket(where.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(fd, where.ai_addr, where.ai_addrlen) == 0 && ::listen(fd, kBacklog) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

}  // namespace

Listener::Listener(const std::string& address, const std::string& option) {
  const auto parsed = parse_address(address, AddressUse::kToListen);
  if (!parsed) throw std::invalid_argument(option + " " + parsed.error().message);
  const auto found = look_up(*parsed, AddressUse::kToListen);
  if (!found) throw std::runtime_error(option + " " + address + ": " + found.error().message);
  for (const addrinfo* where = found->get(); where != nullptr && fd_ < 0; where = where->ai_next)
    fd_ = listen_on(*where);
  if (fd_ < 0)
    throw std::runtime_error(option + " " + address + ": " + std::strerror(errno) +
                             "; choose another port, or port 0 for any that is free");
  spare_ = open_spare();
}

Listener::~Listener() {
  if (fd_ >= 0) ::close(fd_);
  if (spare_ >= 0) ::close(spare_);
}

std::string Listener::address() const {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* generic = reinterpret_cast<sockaddr*>(&storage);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getsockname(fd_, generic, &size) != 0 ||
      ::getnameinfo(generic, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV))
    throw std::runtime_error("the address of the listening socket is unknown");
  const std::string name = host.data();
  return (storage.ss_family == AF_INET6 ? "[" + name + "]" : name) + ":" + port.data();
}

Listener::Accepted Listener::accept(int& socket) {
  socket = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket >= 0) return Accepted::kSocket;
  if (errno != EMFILE && errno != ENFILE) return Accepted::kNothing;
  if (spare_ >= 0) ::close(spare_);
  const int dropped = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (dropped >= 0) ::close(dropped);
  spare_ = open_spare();
  return Accepted::kNoDescriptors;
}

}  // namespace gradwire
