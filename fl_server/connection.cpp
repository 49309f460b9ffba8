#include "fl_server/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <sys/socket.h>
#include <utility>
#include <vector>

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include "proto/control_frame.h"

namespace gradwire {
namespace {

constexpr std::size_t kReadBytes = 4096;  // a small message arrives in one read

SteadyTime now() { return std::chrono::steady_clock::now(); }

std::string peer_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::getpeername(fd, generic, &size) != 0 ||
      ::getnameinfo(generic, size, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV))
    return "unknown";
  const std::string name = host.data();
  return (address.ss_family == AF_INET6 ? "[" + name + "]" : name) + ":" + port.data();
}

bool has_magic(std::span<const std::byte, kPrefixBytes> prefix) {
  std::uint32_t magic = 0;
  for (std::size_t k = 0; k < sizeof magic; ++k) magic |= static_cast<std::uint32_t>(prefix[k]) << (8 * k);
  return magic == kMagic;
}

}  // namespace

struct Connection::Impl {
  Impl(asio::io_context& io_context, int fd, const WireTimes& wire_times, FrameHandler& frame_handler,
       ConnectionCounts& connection_counts)
      : io(io_context),
        socket(io_context, fd),
        linger(io_context),
        times(wire_times),
        handler(&frame_handler),
        counts(connection_counts),
        peer(peer_of(fd)),
        buffer(kReadBytes),
        heard(now()),
        sent(heard) {
    counts.open += 1;
  }
  ~Impl() { shut(); }

  using Self = std::shared_ptr<Connection>;
  asio::awaitable<void> read_frames(Self self);
  asio::awaitable<bool> fill(std::size_t bytes);
  asio::awaitable<bool> read_payload(std::span<const std::span<std::byte>> targets);
  asio::awaitable<bool> read_some(std::span<std::byte> to, std::size_t& got);
  asio::awaitable<void> discard();
  // A frame of at least `bytes` bytes is arriving.
  void note_frame(std::uint64_t bytes) {
    if (frame_bytes == 0) frame_started = heard;
    frame_bytes = std::max(frame_bytes, bytes);
  }

  void write(const Self& self);
  void wait_writable(const Self& self);
  void count_borrowing() {
    if (const bool now = queue.borrowing(); now != std::exchange(is_borrowing, now))
      counts.borrowing += now ? 1 : -1;
  }

  void shut();
  void detach(const Self& self, const std::string& why);

  asio::io_context& io;
  asio::posix::stream_descriptor socket;
  asio::steady_timer linger;
  const WireTimes& times;
  FrameHandler* handler;  // null once the connection is closed or refused
  ConnectionCounts& counts;
  const std::string peer;
  std::string failure;  // why the last read or write failed

  std::uint64_t max_payload = 0;
  std::vector<std::byte> buffer;
  std::size_t begin = 0, end = 0;  // of what was read and not used
  bool in_payload = false;
  std::uint64_t frame_bytes = 0;  // of the frame that is arriving, as far as known; 0: none is
  SteadyTime frame_started, heard;

  WriteQueue queue;
  bool waiting = false;   // until the socket takes more
  bool refused = false;   // what is in the queue says so, and nothing follows
  bool in_order = false;  // a `last` message was sent
  bool is_borrowing = false, heartbeats = false;
  SteadyTime progress, sent;
};

// ---- reading ----

// False: the connection is no more, `failure` says why.
asio::awaitable<bool> Connection::Impl::read_some(std::span<std::byte> to, std::size_t& got) {
  asio::error_code error;
  got = co_await socket.async_read_some(asio::buffer(to.data(), to.size()),
                                        asio::redirect_error(asio::use_awaitable, error));
  if (error) {
    failure = error == asio::error::eof ? "the client closed the connection" : error.message();
    co_return false;
  }
  heard = now();
  co_return handler != nullptr;
}

// Makes at least `bytes` unused bytes lie in the buffer.
asio::awaitable<bool> Connection::Impl::fill(std::size_t bytes) {
  if (end - begin >= bytes) co_return true;
  std::copy(buffer.begin() + static_cast<std::ptrdiff_t>(begin),
            buffer.begin() + static_cast<std::ptrdiff_t>(end), buffer.begin());
  end -= begin;
  begin = 0;
  if (buffer.size() < bytes) buffer.resize(bytes);
  while (end < bytes) {
    std::size_t got = 0;
    if (end > 0) note_frame(bytes);
    if (!co_await read_some(std::span(buffer).subspan(end), got)) co_return false;
    note_frame(bytes);
    end += got;
  }
  co_return true;
}

// Straight into the targets, but for what came with the header.
asio::awaitable<bool> Connection::Impl::read_payload(std::span<const std::span<std::byte>> targets) {
  in_payload = true;
  for (std::span<std::byte> target : targets) {
    const std::size_t here = std::min(target.size(), end - begin);
    std::copy_n(buffer.begin() + static_cast<std::ptrdiff_t>(begin), here, target.begin());
    begin += here;
    target = target.subspan(here);
    while (!target.empty()) {
      std::size_t got = 0;
      if (!co_await read_some(target, got)) co_return false;
      target = target.subspan(got);
    }
  }
  in_payload = false;
  co_return true;
}

asio::awaitable<void> Connection::Impl::read_frames(Self self) {
  while (handler != nullptr) {
    if (!co_await fill(kPrefixBytes)) break;
    std::array<std::byte, kPrefixBytes> raw;
    std::copy_n(buffer.begin() + static_cast<std::ptrdiff_t>(begin), kPrefixBytes, raw.begin());
    if (!has_magic(raw)) {
      self->close("the peer does not speak gradwire");
      break;
    }
    const Result<Prefix> prefix = read_prefix(raw, max_payload);
    if (!prefix) {
      self->refuse(prefix.error().message, false, 0);
      break;
    }
    note_frame(kPrefixBytes);
    frame_bytes = kPrefixBytes + prefix->header_len + prefix->payload_len;
    if (!co_await fill(kPrefixBytes + prefix->header_len)) break;
    const std::span header =
        std::span<const std::byte>(buffer).subspan(begin + kPrefixBytes, prefix->header_len);
    begin += kPrefixBytes + prefix->header_len;
    Status status = check_header(raw, header);
    if (status) {
      const auto targets = handler->on_header(*prefix, header);
      if (!targets) {
        status = targets.error();
      } else if (handler != nullptr) {
        if (prefix->payload_len > 0 && !co_await read_payload(*targets)) break;
        frame_bytes = 0;
        status = handler->on_frame();
      }
    }
    if (!status) self->refuse(status.error().message, false, 0);
  }
  if (handler != nullptr) self->close(failure);
  co_await discard();
}

// What a refused peer still sends, until it hangs up or the time to linger is over.
asio::awaitable<void> Connection::Impl::discard() {
  asio::error_code error;
  while (socket.is_open() && !error) {
    co_await socket.async_read_some(asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
  }
  shut();
}

// ---- writing ----

void Connection::Impl::write(const Self& self) {
  if (waiting || !socket.is_open()) return;
  for (;;) {
    switch (queue.write_once(socket.native_handle())) {
      case WriteQueue::Progress::kNothing: count_borrowing(); return wait_writable(self);
      case WriteQueue::Progress::kFailed: return self->close(std::strerror(errno));
      case WriteQueue::Progress::kSome: progress = sent = now(); break;
      case WriteQueue::Progress::kAll:
        progress = sent = now();
        count_borrowing();
        if (refused) ::shutdown(socket.native_handle(), SHUT_WR);
        return;
    }
  }
}

void Connection::Impl::wait_writable(const Self& self) {
  waiting = true;
  socket.async_wait(asio::posix::descriptor_base::wait_write, [this, self](const asio::error_code& error) {
    waiting = false;
    if (!error) write(self);
  });
}

// ---- the end ----

void Connection::Impl::shut() {
  if (!socket.is_open()) return;
  asio::error_code ignored;
  socket.close(ignored);
  linger.cancel();
  queue.clear();
  count_borrowing();
  counts.open -= 1;
}

void Connection::Impl::detach(const Self& self, const std::string& why) {
  if (handler == nullptr) return;
  asio::post(io, [self, told = std::exchange(handler, nullptr), why] { told->on_closed(why); });
}

Connection::Connection(asio::io_context& io, int fd, const WireTimes& times, FrameHandler& handler,
                       ConnectionCounts& counts)
    : impl_(std::make_unique<Impl>(io, fd, times, handler, counts)) {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

Connection::~Connection() = default;

void Connection::start() {
  const auto ended = [self = shared_from_this()](const std::exception_ptr& failure) {
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const std::bad_alloc&) {
      self->close("there is no memory for its message");
    }
  };
  asio::co_spawn(impl_->io, impl_->read_frames(shared_from_this()), ended);
}

const std::string& Connection::peer() const { return impl_->peer; }
bool Connection::open() const { return impl_->handler != nullptr; }
bool Connection::ending() const { return impl_->in_order; }
bool Connection::writing() const { return !impl_->queue.empty(); }
void Connection::set_max_payload(std::uint64_t bytes) { impl_->max_payload = bytes; }
void Connection::expect_heartbeats() { impl_->heartbeats = true; }

void Connection::send(Outgoing message) {
  Impl& m = *impl_;
  if (!open() || m.in_order) return;
  m.in_order = message.last;
  if (m.queue.empty()) m.progress = now();
  m.queue.push(std::move(message));
  m.write(shared_from_this());
  m.count_borrowing();
}

void Connection::own_sections(OwnedSections& copies) {
  impl_->queue.own(copies);
  impl_->count_borrowing();
}

void Connection::refuse(const std::string& message, bool fatal, std::uint32_t retry_after_ms) {
  Impl& m = *impl_;
  if (!open()) return;
  const auto self = shared_from_this();
  m.detach(self, message);
  m.queue.drop_waiting();
  const bool can_tell = m.queue.empty();  // else in the middle of another frame
  if (can_tell) {
    m.queue.push(Outgoing::control(error_frame(message, fatal, retry_after_ms)));
    m.refused = true;
    m.write(self);
  }
  if (!can_tell || m.in_payload || m.waiting) return m.shut();
  m.count_borrowing();
  m.linger.expires_after(m.times.linger);
  m.linger.async_wait([self](const asio::error_code& error) {
    if (!error) self->impl_->shut();
  });
}

void Connection::close(const std::string& why) {
  impl_->detach(shared_from_this(), why);
  impl_->shut();
}

void Connection::check_time(SteadyTime now) {
  Impl& m = *impl_;
  if (!open()) return;
  const auto frame_time =
      m.times.frame_grace + std::chrono::seconds(m.frame_bytes / WireTimes::kMinBytesPerSecond);
  if (m.frame_bytes > 0 && now - m.frame_started > frame_time)
    return refuse("a message took too long to arrive", false, 0);
  if (writing() && now - m.progress > m.times.write_stall)
    return close("it read nothing for " + std::to_string(m.times.write_stall.count()) + " ms");
  if (!m.heartbeats) return;
  const auto silence = m.times.heartbeat * m.times.missed_heartbeats;
  if (now - m.heard > silence) return close("no sign of life for " + std::to_string(silence.count()) + " ms");
  if (!writing() && now - m.sent >= m.times.heartbeat) send(Outgoing::control(heartbeat_frame()));
}

}  // namespace gradwire
