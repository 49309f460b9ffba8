#include "benchmarks/slow_link.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace gradwire::bench {
namespace {

constexpr std::size_t kPassedAtOnce = 16 * 1024;
constexpr int kQueueBytes = 64 * 1024;  // per link; the system's own queues would take many bytes at once

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}
const sockaddr* plain(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

}  // namespace

SlowLink::SlowLink(const std::string& server, double bytes_per_second)
    : server_port_(static_cast<std::uint16_t>(std::stoi(server.substr(server.rfind(':') + 1)))),
      bytes_per_second_(bytes_per_second) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::setsockopt(listener_, SOL_SOCKET, SO_RCVBUF, &kQueueBytes, sizeof kQueueBytes);
  if (listener_ < 0 || ::bind(listener_, plain(address), size) != 0 || ::listen(listener_, 64) != 0)
    throw std::runtime_error("a slow link cannot listen on loopback: " + std::string(std::strerror(errno)));
  ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  accepting_ = std::thread([this] { accept_all(); });
}

SlowLink::~SlowLink() {
  stop_ = true;
  accepting_.join();
  for (const int fd : sockets_) ::shutdown(fd, SHUT_RDWR);
  for (std::thread& thread : passing_) thread.join();
  for (const int fd : sockets_) ::close(fd);
  ::close(listener_);
}

void SlowLink::accept_all() {
  while (!stop_) {
    pollfd ready{listener_, POLLIN, 0};
    if (::poll(&ready, 1, 20) <= 0) continue;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(server_port_);
    const int yes = 1;
    for (const int fd : {client, server}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    sockets_.insert(sockets_.end(), {client, server});
    if (::connect(server, plain(address), sizeof address) != 0) {
      ::shutdown(client, SHUT_RDWR);
      continue;
    }
    passing_.emplace_back([this, client, server] { pass(client, server, bytes_per_second_); });
    passing_.emplace_back([this, client, server] { pass(server, client, 1e12); });
  }
}

void SlowLink::pass(int from, int to, double bytes_per_second) const {
  using Clock = std::chrono::steady_clock;
  std::array<std::byte, kPassedAtOnce> bytes;
  Clock::time_point free = Clock::now();  // end of the transfer of all bytes so far
  for (;;) {
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), 0);
    if (got <= 0) break;
    free = std::max(free, Clock::now()) +
           std::chrono::duration_cast<Clock::duration>(
               std::chrono::duration<double>(static_cast<double>(got) / bytes_per_second));
    std::this_thread::sleep_until(free);
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t more =
          ::send(to, bytes.data() + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
      if (more <= 0) return;
      sent += more;
    }
  }
  ::shutdown(to, SHUT_WR);
}

}  // namespace gradwire::bench
