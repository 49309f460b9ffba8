// An HTTP client for servers on this machine. It sends and receives raw bytes.
#pragma once

#include <chrono>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "tests/support/fake_client.h"

namespace gradwire {

class HttpPeer {
 public:
  explicit HttpPeer(const std::string& address) : fd_(connect_to(address)) {}
  ~HttpPeer() {
    if (fd_ >= 0) ::close(fd_);
  }
  HttpPeer(HttpPeer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  HttpPeer& operator=(HttpPeer&&) = delete;

  // Sends bytes. Returns false if the server has closed the connection.
  bool send(const std::string& bytes) const {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  // Returns all bytes until the server closes the connection or the time is over.
  std::string read_all(std::chrono::seconds time = std::chrono::seconds(20)) const {
    const auto end = std::chrono::steady_clock::now() + time;
    std::string all;
    for (char buffer[4096]; std::chrono::steady_clock::now() < end;) {
      pollfd ready{fd_, POLLIN, 0};
      if (::poll(&ready, 1, 50) <= 0) continue;
      const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) return all;
      all.append(buffer, static_cast<std::size_t>(got));
    }
    ADD_FAILURE() << "the server has not closed the connection";
    return all;
  }

 private:
  int fd_;
};

struct HttpAnswer {
  int status = 0;  // 0 if no response came
  std::string head, body;
};

inline HttpAnswer http_ask(const std::string& address, const std::string& request) {
  const HttpPeer peer(address);
  peer.send(request);
  const std::string all = peer.read_all();
  const std::size_t end = all.find("\r\n\r\n");
  if (!all.starts_with("HTTP/1.1 ") || end == std::string::npos) return {0, all, ""};
  return {std::stoi(all.substr(9)), all.substr(0, end), all.substr(end + 4)};
}

inline HttpAnswer http_get(const std::string& address, const std::string& path) {
  return http_ask(address, "GET " + path + " HTTP/1.1\r\nHost: " + address + "\r\n\r\n");
}

}  // namespace gradwire
