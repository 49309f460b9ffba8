#include "fl_client/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>

#include "fl_client/client_texts.h"
#include "fl_client/open_socket.h"
#include "proto/wire/address.h"
#include "proto/wire/control_frame.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kBufferBytes = 16 * 1024;          // a small message arrives in one read
constexpr std::size_t kMaxVectors = 16;                  // in one system call
constexpr std::size_t kArrivingBytes = 16 * 1024 + 512;  // for one read into the filter: a TLS record
constexpr std::size_t kFilteredAtOnce = 64 * 1024;       // bytes per send
constexpr std::uint32_t kMissedHeartbeats = 3;
constexpr milliseconds kLongestTick{250};  // until another thread starts to read during a computation
// The time allowed for a frame to arrive, besides that of its bytes at the expected rate.
constexpr std::chrono::seconds kFrameGrace{30};
constexpr std::uint64_t kLongestSeconds = 366 * 86'400;  // for the bytes of a frame

void set_timeout(int fd, int which, milliseconds timeout) {
  timeval value{};
  value.tv_sec = static_cast<time_t>(timeout.count() / 1000);
  value.tv_usec = static_cast<suseconds_t>(timeout.count() % 1000 * 1000);
  ::setsockopt(fd, SOL_SOCKET, which, &value, sizeof value);
}

}  // namespace

Result<std::unique_ptr<ServerConnection>> ServerConnection::connect(const std::string& address,
                                                                    milliseconds connect_timeout,
                                                                    milliseconds io_timeout,
                                                                    const MakeFilter& filter,
                                                                    const std::stop_token& stop) {
  const auto parsed = parse_address(address, AddressUse::kToConnect);
  if (!parsed) return parsed.error();
  const auto found = look_up_until(stop, *parsed);
  if (!found) return Error{address + ": " + found.error().message};
  int error = 0;
  for (const addrinfo* where = found->get(); where != nullptr; where = where->ai_next) {
    if (stop.stop_requested()) return Error{kClientStopped};
    const int fd = open_socket(*where, connect_timeout, stop, error);
    if (fd < 0) continue;
    std::unique_ptr<ServerConnection> connection(new ServerConnection(fd, io_timeout, stop));
    if (!filter) return connection;
    connection->filter_ = filter(parsed->host);
    if (Status status = connection->agree(); !status)
      return Error{address + ": " + status.error().message, status.error().kind};
    return connection;
  }
  return Error{address + ": " + std::strerror(error)};
}

void ServerConnection::HangUp::operator()() const noexcept { ::shutdown(fd, SHUT_RDWR); }

ServerConnection::ServerConnection(int fd, milliseconds io_timeout, const std::stop_token& stop)
    : fd_(fd), silence_(io_timeout), buffer_(kBufferBytes) {
  const int yes = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  set_timeout(fd_, SO_RCVTIMEO, io_timeout);
  set_timeout(fd_, SO_SNDTIMEO, io_timeout);
  on_stop_.emplace(stop, HangUp{fd_});
}

ServerConnection::~ServerConnection() {
  on_stop_.reset();  // before the descriptor is closed
  {
    const std::lock_guard lock(stopping_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  ::shutdown(fd_, SHUT_RDWR);  // also ends the write of a heartbeat
  if (heartbeat_.joinable()) heartbeat_.join();
  if (worked_ >= 0) ::close(worked_);
  ::close(fd_);
}

// ---- reading ----

// Runs the filter's handshake until both ends are ready.
Status ServerConnection::agree() {
  frame_due_ = std::chrono::steady_clock::now() + silence_;
  arrived_.resize(kArrivingBytes);
  for (;;) {
    const bool failed = !trouble_.empty();
    if (Status status = flush_filter(); !status && !failed) return status;
    if (failed) return Error{trouble_, trouble_kind_};
    if (filter_->ready()) return Unit{};
    const auto got = receive_raw(arrived_);
    if (!got) return Error{got.error().message + kBeforeTls};
    if (Status status = filter_->feed(std::span(arrived_).first(*got)); !status) {
      trouble_ = status.error().message;
      trouble_kind_ = status.error().kind;
    }
  }
}

// Reads at least one byte.
Result<std::size_t> ServerConnection::receive(std::span<std::byte> to) {
  if (!filter_) return receive_raw(to);
  for (;;) {
    {
      const std::lock_guard lock(filtering_);
      if (!trouble_.empty()) return connection_lost(trouble_);
      const Result<std::size_t> got = filter_->read(to);
      if (!got) return connection_lost(got.error().message);
      if (*got > 0) return *got;
    }
    const auto got = receive_raw(arrived_);
    if (!got) return got.error();
    const std::lock_guard lock(filtering_);
    if (Status status = filter_->feed(std::span(arrived_).first(*got)); !status)
      trouble_ = status.error().message;
  }
}

Result<std::size_t> ServerConnection::receive_raw(std::span<std::byte> to) {
  for (;;) {
    const ssize_t got = ::recv(fd_, to.data(), to.size(), 0);
    if (got > 0 && std::chrono::steady_clock::now() > frame_due_)
      return connection_lost("a message took too long to arrive");
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) return connection_lost("it hung up");
    if (errno == EAGAIN || errno == EWOULDBLOCK)
      return connection_lost("it was silent for " + std::to_string(silence_.count()) + " ms");
    if (errno != EINTR) return connection_lost(std::strerror(errno));
  }
}

// Reads until the buffer holds at least `bytes` unused bytes.
Status ServerConnection::fill(std::size_t bytes) {
  if (end_ - begin_ >= bytes) return Unit{};
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (buffer_.size() < bytes) buffer_.resize(bytes);
  while (end_ < bytes) {
    const auto got = receive(std::span(buffer_).subspan(end_));
    if (!got) return got.error();
    end_ += *got;
  }
  return Unit{};
}

Result<ServerConnection::ReceivedFrame> ServerConnection::read_head(std::uint64_t max_payload) {
  frame_due_ = std::chrono::steady_clock::time_point::max();
  if (Status status = fill(1); !status) return status.error();
  frame_due_ = std::chrono::steady_clock::now() + kFrameGrace;
  if (Status status = fill(kPrefixBytes); !status) return status.error();
  std::array<std::byte, kPrefixBytes> raw;
  std::memcpy(raw.data(), buffer_.data() + begin_, kPrefixBytes);
  const Result<Prefix> prefix = read_prefix(raw, max_payload);
  if (!prefix) return prefix.error();
  const std::uint64_t seconds = (prefix->header_len + prefix->payload_len) / bytes_per_second_;
  frame_due_ += std::chrono::seconds(std::min(seconds, kLongestSeconds));
  if (Status status = fill(kPrefixBytes + prefix->header_len); !status) return status.error();
  const auto header = std::span<const std::byte>(buffer_).subspan(begin_ + kPrefixBytes, prefix->header_len);
  begin_ += kPrefixBytes + prefix->header_len;
  if (Status status = check_header(raw, header); !status) return status.error();
  return ReceivedFrame{*prefix, header};
}

milliseconds ServerConnection::longest_head() const {
  const std::uint64_t seconds = (kPrefixBytes + kMaxHeaderBytes) / bytes_per_second_;
  return silence_ + kFrameGrace + std::chrono::seconds(std::min(seconds, kLongestSeconds));
}

Status ServerConnection::read_payload(std::span<std::byte> place) {
  const std::size_t here = std::min(place.size(), end_ - begin_);
  std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), here, place.begin());
  begin_ += here;
  place = place.subspan(here);
  while (!place.empty()) {
    const auto got = receive(place);
    if (!got) return got.error();
    place = place.subspan(*got);
  }
  return Unit{};
}

// Passes the bytes that have arrived to the filter, without waiting. Some of them may be for the filter
// alone.
void ServerConnection::filter_arrived() {
  const ssize_t got = ::recv(fd_, arrived_.data(), arrived_.size(), MSG_DONTWAIT);
  const bool over = got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
  const std::lock_guard lock(filtering_);
  if (over) trouble_ = got == 0 ? "it hung up" : std::strerror(errno);
  if (got <= 0 || !trouble_.empty()) return;
  const Status status = filter_->feed(std::span(arrived_).first(static_cast<std::size_t>(got)));
  if (!status) trouble_ = status.error().message;
}

// Returns whether a read would return at once, with bytes or an error.
bool ServerConnection::has_unread() {
  if (end_ > begin_) return true;
  const std::lock_guard lock(filtering_);
  return filter_ && (filter_->has_plain() || !trouble_.empty());
}

bool ServerConnection::more_waiting() {
  if (has_unread()) return true;
  if (filter_) {
    filter_arrived();
    return has_unread();
  }
  std::byte next;
  return ::recv(fd_, &next, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

// ---- writing ----

// REQUIRES: writing_ is held.
Status ServerConnection::write_segments(std::span<const std::span<const std::byte>> segments) {
  Status status = filter_ ? write_filtered(segments) : write_raw(segments);
  if (status) written_ = std::chrono::steady_clock::now();
  return status;
}

Status ServerConnection::write_filtered(std::span<const std::span<const std::byte>> segments) {
  std::size_t waiting = 0;
  for (std::span<const std::byte> segment : segments) {
    while (!segment.empty()) {
      const std::size_t count = std::min(segment.size(), kFilteredAtOnce);
      {
        const std::lock_guard lock(filtering_);
        if (Status status = filter_->write(segment.first(count)); !status)
          return connection_lost(status.error().message);
      }
      segment = segment.subspan(count);
      if ((waiting += count) < kFilteredAtOnce) continue;
      waiting = 0;
      if (Status status = flush_filter(); !status) return status;
    }
  }
  return flush_filter();
}

// Sends the filter's bytes to the server. REQUIRES: writing_ is held, or no other thread uses the connection.
Status ServerConnection::flush_filter() {
  {
    const std::lock_guard lock(filtering_);
    const std::span<const std::byte> outgoing = filter_->outgoing();
    filtered_.assign(outgoing.begin(), outgoing.end());
    filter_->sent(outgoing.size());
  }
  const std::span<const std::byte> segment = filtered_;
  return segment.empty() ? Status(Unit{}) : write_raw(std::span(&segment, 1));
}

Status ServerConnection::write_raw(std::span<const std::span<const std::byte>> segments) {
  std::array<iovec, kMaxVectors> vectors;
  std::size_t first = 0, skip = 0;  // written so far: the segments before `first`, and `skip` bytes of it
  while (first < segments.size()) {
    const std::size_t count = std::min(segments.size() - first, kMaxVectors);
    for (std::size_t k = 0; k < count; ++k) {
      const auto segment = segments[first + k].subspan(k == 0 ? skip : 0);
      vectors[k] = {const_cast<std::byte*>(segment.data()), segment.size()};
    }
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0)
      return connection_lost(errno == EAGAIN || errno == EWOULDBLOCK
                                 ? "it reads nothing; it may be overloaded"
                                 : std::strerror(errno));
    skip += static_cast<std::size_t>(sent);
    while (first < segments.size() && skip >= segments[first].size()) skip -= segments[first++].size();
  }
  return Unit{};
}

Status ServerConnection::write(std::span<const std::span<const std::byte>> segments) {
  const std::lock_guard lock(writing_);
  return write_segments(segments);
}

Status ServerConnection::write(const Encoded& message) {
  const std::lock_guard lock(writing_);
  segments_.assign({message.prefix, std::as_bytes(std::span(message.header))});
  segments_.insert(segments_.end(), message.sections.begin(), message.sections.end());
  return write_segments(segments_);
}

void ServerConnection::keep_pace(const Pace& pace) {
  bytes_per_second_ = pace.bytes_per_second;
  silence_ = pace.heartbeat * kMissedHeartbeats;
  set_timeout(fd_, SO_RCVTIMEO, silence_);
  heartbeat_ = std::thread([this, interval = pace.heartbeat] { beat(interval); });
}

void ServerConnection::send_heartbeat(milliseconds interval) {
  static const std::string frame = heartbeat_frame();
  const auto segment = std::as_bytes(std::span(frame));
  // While a frame is being written, its bytes replace the heartbeat.
  if (const std::unique_lock lock(writing_, std::try_to_lock);
      lock && std::chrono::steady_clock::now() - written_ >= interval / 2)
    (void)write_segments(std::span(&segment, 1));  // the reader will notice if the connection is lost
}

void ServerConnection::beat(milliseconds interval) {
  std::unique_lock stop_lock(stopping_);
  const milliseconds tick = std::clamp(interval / 4, milliseconds(1), kLongestTick);
  const auto ticks = interval / tick;  // from one heartbeat to the next
  for (std::int64_t k = 1; !stop_changed_.wait_for(stop_lock, tick, [this] { return stop_; }); ++k) {
    stop_lock.unlock();
    if (k % ticks == 0) send_heartbeat(interval);
    if (const std::lock_guard lock(working_); take_one_ != nullptr && !reader_thread_.joinable())
      start_reader();
    stop_lock.lock();
  }
}

// ---- reading while another thread computes ----

void ServerConnection::read_while_computing(const std::function<void()>& work,
                                            const std::function<bool()>& take_one) {
  struct Attended {  // ends the reader thread, even if the work throws
    ~Attended() {
      std::unique_lock lock(connection.working_);
      connection.take_one_ = nullptr;
      if (!connection.reader_thread_.joinable()) return;
      std::uint64_t count = 1;
      (void)!::write(connection.worked_, &count, sizeof count);
      connection.reader_thread_.join();
      (void)!::read(connection.worked_, &count, sizeof count);
    }
    ServerConnection& connection;
  };
  {
    const std::lock_guard lock(working_);
    take_one_ = &take_one;
  }
  const Attended read{*this};
  work();
}

void ServerConnection::start_reader() {
  if (worked_ < 0) worked_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (worked_ < 0) return;  // no descriptors: the work continues, and frames of the server must wait
  const auto read_meanwhile = [this, &take_one = *take_one_] {
    for (std::array<pollfd, 2> ready = {{{worked_, POLLIN, 0}, {fd_, POLLIN, 0}}};;) {
      bool unread = has_unread();
      if (!unread) ::poll(ready.data(), ready.size(), -1);
      if (!unread && ready[0].revents != 0) return;
      if (!unread && ready[1].revents != 0) {
        if (filter_) filter_arrived();
        unread = !filter_ || has_unread();
      }
      if (unread && !take_one()) return;
    }
  };
  try {
    reader_thread_ = std::thread(read_meanwhile);
  } catch (const std::system_error&) {  // no thread can be created: frames of the server must wait
  }
}

}  // namespace gradwire
