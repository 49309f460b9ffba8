// A listening TCP socket, without blocking.
#pragma once

#include <string>

namespace gradwire {

class Listener {
 public:
  // HOST:PORT, [V6]:PORT or :PORT (all interfaces); port 0: any that is free. Throws std::invalid_argument or
  // std::runtime_error (one line).
  explicit Listener(const std::string& address);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const { return fd_; }
  std::string address() const;  // as bound, numeric

  enum class Taken { kSocket, kNothing, kNoDescriptors };
  // The next socket that waits, if any. Without free descriptors the peer is hung up on, so that it does not
  // wait.
  Taken accept(int& socket);

 private:
  int fd_ = -1;
  int spare_ = -1;  // given up for a moment to take and drop a connection when there are no descriptors left
};

}  // namespace gradwire
