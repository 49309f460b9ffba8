// A service manager's end of sd_notify(3): a socket that programs send notices to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "tests/support/eventually.h"

namespace gradwire {

// While it exists, $NOTIFY_SOCKET has its address. '@' begins the name of an abstract socket.
class NoticeSocket {
 public:
  explicit NoticeSocket(const std::string& address) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    address.copy(at.sun_path, sizeof at.sun_path - 1);
    if (address.starts_with('@')) at.sun_path[0] = '\0';
    is_bound_ = ::bind(fd_, reinterpret_cast<const sockaddr*>(&at),
                       static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size())) == 0;
    ::setenv("NOTIFY_SOCKET", address.c_str(), 1);
  }
  ~NoticeSocket() {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
    ::close(fd_);
  }
  NoticeSocket(const NoticeSocket&) = delete;
  NoticeSocket& operator=(const NoticeSocket&) = delete;

  bool is_bound() const { return is_bound_; }
  // Returns all notices so far.
  const std::vector<std::string>& notices() {
    std::array<char, 4096> text;
    for (ssize_t size = 0; (size = ::recv(fd_, text.data(), text.size(), MSG_DONTWAIT)) >= 0;)
      notices_.emplace_back(text.data(), static_cast<std::size_t>(size));
    return notices_;
  }
  std::size_t count(const std::string& notice) {
    std::size_t found = 0;
    for (const std::string& one : notices()) found += one == notice ? 1 : 0;
    return found;
  }
  // Waits for a notice that contains the text.
  bool hears(const std::string& text) {
    return eventually([&] {
      for (const std::string& one : notices())
        if (one.find(text) != one.npos) return true;
      return false;
    });
  }

 private:
  int fd_;
  bool is_bound_ = false;
  std::vector<std::string> notices_;
};

}  // namespace gradwire
