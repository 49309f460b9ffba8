// A non-blocking, listening TCP socket.
#pragma once

#include <string>

namespace gradwire {

class Listener {
 public:
  // Listens on HOST:PORT, [V6]:PORT or :PORT (all interfaces). Port 0 picks a free port. Throws
  // std::invalid_argument or std::runtime_error: one line that begins with `option`, the source of the
  // address.
  explicit Listener(const std::string& address, const std::string& option = "--listen");
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const { return fd_; }
  std::string address() const;  // as bound, numeric

  enum class Accepted { kSocket, kNothing, kNoDescriptors };
  // Accepts the next waiting connection, if any. If no descriptors are free, closes that connection, so the
  // peer does not wait.
  Accepted accept(int& socket);

 private:
  int fd_ = -1;
  int spare_ = -1;  // closed for a moment to accept and close a connection if no descriptors are left
};

}  // namespace gradwire
