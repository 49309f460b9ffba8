// A listening TCP socket, without blocking.
#pragma once

#include <string>

namespace gradwire {

class Listener {
 public:
  // HOST:PORT, [V6]:PORT or :PORT (all interfaces); port 0: any that is free. Throws std::invalid_argument or
  // std::runtime_error (one line, that begins with the option that gave the address).
  explicit Listener(const std::string& address, const std::string& option = "--listen");
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const { return fd_; }
  std::string address() const;  // as bound, numeric

  enum class Accepted { kSocket, kNothing, kNoDescriptors };
  // Accepts the next connection that waits, if any. Without free descriptors it is closed, so that the peer
  // does not wait.
  Accepted accept(int& socket);

 private:
  int fd_ = -1;
  int spare_ = -1;  // closed for a moment to accept and close a connection when no descriptors are left
};

}  // namespace gradwire
