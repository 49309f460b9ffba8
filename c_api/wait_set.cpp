#include "c_api/wait_set.h"

#include <cerrno>
#include <cstdint>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace gradwire {

WaitSet::WaitSet()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event woken{EPOLLIN, {}};
  if (epoll_ >= 0 && event_ >= 0 && ::epoll_ctl(epoll_, EPOLL_CTL_ADD, event_, &woken) == 0) return;
  const int error = errno;
  if (epoll_ >= 0) ::close(epoll_);
  if (event_ >= 0) ::close(event_);
  throw std::system_error(error, std::generic_category(), "no descriptor to wait with");
}

WaitSet::~WaitSet() {
  ::close(epoll_);
  ::close(event_);
}

// A closed socket has left the set by itself.
void WaitSet::watch(const StepClient::Wait& wait) {
  if (wait.fd < 0) return;
  epoll_event events{(wait.reads ? std::uint32_t{EPOLLIN} : 0) | (wait.writes ? std::uint32_t{EPOLLOUT} : 0),
                     {}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, wait.fd, &events) != 0)
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wait.fd, &events);
}

void WaitSet::wake() const {
  const int before = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_, &one, sizeof one);
  errno = before;
}

}  // namespace gradwire
