#include "fl_client/open_socket.h"

#include <cerrno>
#include <condition_variable>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace gradwire {
namespace {

using std::chrono::milliseconds;

// Connects. Returns 0 or the errno.
int connect_within(int fd, const addrinfo& where, milliseconds timeout, const std::stop_token& stop) {
  if (::connect(fd, where.ai_addr, where.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  const std::stop_callback on_stop(stop, [fd] { ::shutdown(fd, SHUT_RDWR); });  // ends poll()
  pollfd ready{fd, POLLOUT, 0};
  const int count = ::poll(&ready, 1, static_cast<int>(timeout.count()));
  if (count == 0) return ETIMEDOUT;
  if (stop.stop_requested()) return ECANCELED;
  int error = 0;
  socklen_t size = sizeof error;
  if (count < 0 || ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

}  // namespace

Result<AddressList> look_up_until(const std::stop_token& stop, const Address& address) {
  if (!stop.stop_possible() || is_numeric(address.host)) return look_up(address, AddressUse::kToConnect);
  struct Shared {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::optional<Result<AddressList>> found;
  };
  const auto shared = std::make_shared<Shared>();  // the thread may outlive this call
  try {
    std::thread([shared, address] {
      Result<AddressList> found = look_up(address, AddressUse::kToConnect);
      const std::lock_guard lock(shared->mutex);
      shared->found = std::move(found);
      shared->changed.notify_all();
    }).detach();
  } catch (const std::system_error&) {  // no thread can be created
    return look_up(address, AddressUse::kToConnect);
  }
  std::unique_lock lock(shared->mutex);
  if (!shared->changed.wait(lock, stop, [&] { return shared->found.has_value(); }))
    return Error{kClientStopped};
  return std::move(*shared->found);
}

int open_socket(const addrinfo& where, milliseconds timeout, const std::stop_token& stop, int& error) {
  const int fd = ::socket(where.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  error = fd < 0 ? errno : connect_within(fd, where, timeout, stop);
  if (error == 0) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
  }
  if (fd >= 0) ::close(fd);
  return -1;
}

}  // namespace gradwire
