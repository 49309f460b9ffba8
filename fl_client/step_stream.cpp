#include "fl_client/step_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "fl_client/client_texts.h"
#include "proto/wire/send_segments.h"

namespace gradwire {
namespace {

constexpr std::size_t kArrivingBytes = 16 * 1024 + 512;  // for one read into the filter: a TLS record
constexpr std::size_t kFilteredAtOnce = 16 * 1024;       // bytes that the filter takes before they are sent

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

StepStream::StepStream(int fd, std::unique_ptr<StreamFilter> filter) : fd_(fd), filter_(std::move(filter)) {
  const int yes = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes,
               sizeof yes);  // fails for other sockets, which need it not
  if (filter_) arrived_.resize(kArrivingBytes);
}

StepStream::~StepStream() { ::close(fd_); }

Result<std::size_t> StepStream::receive(std::span<std::byte> to) {
  const ssize_t got = ::recv(fd_, to.data(), to.size(), MSG_DONTWAIT);
  if (got == 0) return connection_lost("it hung up");
  if (got < 0 && would_block(errno)) return std::size_t{0};
  if (got < 0) return connection_lost(std::strerror(errno));
  bytes_down_ += static_cast<std::uint64_t>(got);
  return static_cast<std::size_t>(got);
}

Result<std::size_t> StepStream::send(std::span<const std::span<const std::byte>> segments) {
  const ssize_t sent = send_segments(fd_, segments);
  is_full_ = sent < 0 && would_block(errno);
  if (is_full_) return std::size_t{0};
  if (sent < 0) return connection_lost(std::strerror(errno));
  bytes_up_ += static_cast<std::uint64_t>(sent);
  return static_cast<std::size_t>(sent);
}

Status StepStream::flush() {
  while (filter_ && !filter_->outgoing().empty()) {
    const std::span<const std::byte> outgoing = filter_->outgoing();
    const auto sent = send(std::span(&outgoing, 1));
    if (!sent) return sent.error();
    if (*sent == 0) return Unit{};
    filter_->sent(*sent);
  }
  return Unit{};
}

Result<bool> StepStream::agree() {
  if (!filter_) return true;
  for (;;) {
    if (Status status = flush(); !status) return status.error();
    if (filter_->ready()) return true;
    const auto got = receive(arrived_);
    if (!got) return Error{got.error().message + kBeforeTls};
    if (*got == 0) return false;
    if (Status status = filter_->feed(std::span(arrived_).first(*got)); !status) {
      (void)flush();  // an alert
      return status.error();
    }
  }
}

Result<std::size_t> StepStream::read(std::span<std::byte> to) {
  if (!filter_) return receive(to);
  for (;;) {
    const Result<std::size_t> plain = filter_->read(to);
    if (!plain) return connection_lost(plain.error().message);
    if (*plain > 0) return *plain;
    const auto got = receive(arrived_);
    if (!got || *got == 0) return got;
    const Status status = filter_->feed(std::span(arrived_).first(*got));
    if (Status flushed = flush(); status && !flushed) return flushed.error();
    if (!status) return connection_lost(status.error().message);
  }
}

Result<std::size_t> StepStream::write(std::span<const std::span<const std::byte>> segments) {
  if (!filter_) return send(segments);
  if (Status status = flush(); !status) return status.error();
  if (!filter_->outgoing().empty()) return std::size_t{0};
  std::size_t taken = 0;
  for (std::span<const std::byte> segment : segments) {
    segment = segment.first(std::min(segment.size(), kFilteredAtOnce - taken));
    if (segment.empty()) continue;
    if (Status status = filter_->write(segment); !status) return connection_lost(status.error().message);
    taken += segment.size();
  }
  if (Status status = flush(); !status) return status.error();
  return taken;
}

}  // namespace gradwire
