#include "report/service_notices.h"

#include <cstddef>
#include <cstdlib>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace gradwire {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns 0 if the variable has no number.
long number(const char* name) { return std::strtol(variable(name).data(), nullptr, 10); }

// Returns a socket that is connected to the address, or -1. '@' begins the name of an abstract socket.
int socket_to(std::string_view address) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (address.size() < 2 || address.size() >= sizeof to.sun_path || (address[0] != '/' && address[0] != '@'))
    return -1;
  address.copy(to.sun_path, address.size());
  if (address[0] == '@') to.sun_path[0] = '\0';
  const int opened = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  const timeval most{1, 0};  // a wait for a manager that is busy
  ::setsockopt(opened, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
  if (opened < 0 || ::connect(opened, reinterpret_cast<const sockaddr*>(&to), size) == 0) return opened;
  ::close(opened);
  return -1;
}

}  // namespace

ServiceNotices::ServiceNotices() : socket_(socket_to(variable("NOTIFY_SOCKET"))) {
  const long process = number("WATCHDOG_PID");
  if (process == 0 || process == ::getpid()) watchdog_ = std::chrono::microseconds(number("WATCHDOG_USEC"));
}

ServiceNotices::~ServiceNotices() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_all();
  if (watch_.joinable()) watch_.join();
  if (socket_ >= 0) ::close(socket_);
}

void ServiceNotices::send(std::string_view notice) {
  if (socket_ >= 0) (void)::send(socket_, notice.data(), notice.size(), MSG_NOSIGNAL);
}

void ServiceNotices::ready() { send("READY=1"); }

void ServiceNotices::status(std::string_view line) {
  if (socket_ >= 0) send("STATUS=" + std::string(line.substr(0, line.find('\n'))));
}

void ServiceNotices::begin_watch(std::function<bool()> is_alive) {
  if (socket_ < 0 || watchdog_ <= std::chrono::microseconds(1)) return;
  try {
    watch_ = std::thread([this, is_alive = std::move(is_alive)] {
      std::unique_lock lock(mutex_);
      do {
        if (is_alive()) send("WATCHDOG=1");
      } while (!ended_.wait_for(lock, watchdog_ / 2, [this] { return is_over_; }));
    });
  } catch (const std::system_error&) {  // no thread can be created: the manager restarts the program
  }
}

}  // namespace gradwire
