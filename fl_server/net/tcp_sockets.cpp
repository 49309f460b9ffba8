#include "fl_server/net/tcp_sockets.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>

#include "fl_server/net/listener.h"
#include "fl_server/net/zero_copy_sender.h"
#include "proto/wire/address.h"
#include "proto/wire/send_segments.h"

namespace gradwire {
namespace {

using Descriptor = asio::posix::stream_descriptor;

constexpr std::size_t kZeroCopyFrom = 64 * 1024;  // bytes; for less, pinning pages costs more than a copy
constexpr int kAcceptsPerWake = 64;
constexpr std::array kSignals = {SIGINT, SIGTERM};  // ask the process to stop
constexpr int kMostUnwanted = 256;                  // connections closed at once in one tick
// Descriptors for files and everything else except connections.
constexpr std::size_t kDescriptorsOfFiles = 64;
// Limit of jobs in a wait whose deadline has passed. Without a limit, busy peers could add jobs endlessly.
constexpr int kJobsWithoutTime = 10'000;

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

// Raises the limit of descriptors as far as the system allows. Returns the number of descriptors for sockets.
std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return SIZE_MAX;
  const rlimit highest{limit.rlim_max, limit.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &highest) == 0) limit = highest;
  return limit.rlim_cur - std::min<rlim_t>(limit.rlim_cur / 2, kDescriptorsOfFiles);
}

// The lookup of one name, on a thread of its own, because a resolver may take minutes.
class NameLookup {
 public:
  explicit NameLookup(LookUp look_up) : look_up_(std::move(look_up)) {}

  // Returns the result of the last lookup and starts another one for the next call. Numeric addresses need
  // none.
  Result<std::shared_ptr<addrinfo>> find(const Address& address) {
    if (is_numeric(address.host)) return shared_from(look_up(address, AddressUse::kToConnect));
    const std::lock_guard lock(shared_->mutex);
    if (!std::exchange(shared_->busy, true)) {
      try {
        std::thread([shared = shared_, look_up = look_up_, address] {
          auto found = shared_from(look_up(address));
          const std::lock_guard done(shared->mutex);
          shared->found = std::move(found);
          shared->busy = false;
        }).detach();
      } catch (const std::system_error& error) {
        shared_->busy = false;
        return Error{std::string("its name cannot be looked up: ") + error.what()};
      }
    }
    return shared_->found;
  }

 private:
  static Result<std::shared_ptr<addrinfo>> shared_from(Result<AddressList> found) {
    if (!found) return found.error();
    return std::shared_ptr<addrinfo>(std::move(*found));
  }

  struct Shared {
    std::mutex mutex;
    bool busy = false;
    Result<std::shared_ptr<addrinfo>> found = Error{"its name is being looked up"};
  };
  const LookUp look_up_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();  // the thread may outlive this object
};

// Returns a socket that is connecting. If the name has several addresses, `turn` picks one, so that a retry
// tries the next address.
Result<int> begin_connection(const std::string& address, NameLookup& lookup, std::size_t turn) {
  const auto parsed = parse_address(address, AddressUse::kToConnect);
  if (!parsed) return parsed.error();
  const auto found = lookup.find(*parsed);
  if (!found) return Error{address + ": " + found.error().message};
  std::size_t count = 0;
  for (const addrinfo* where = found->get(); where != nullptr; where = where->ai_next) ++count;
  const addrinfo* where = found->get();
  for (std::size_t k = turn % count; k > 0; --k) where = where->ai_next;
  const int fd = ::socket(where->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd >= 0 && (::connect(fd, where->ai_addr, where->ai_addrlen) == 0 || errno == EINPROGRESS)) return fd;
  const Error error{address + ": " + std::strerror(errno)};
  if (fd >= 0) ::close(fd);
  return error;
}

class TcpSocket final : public Socket {
 public:
  TcpSocket(asio::io_context& io, int fd, std::string peer, bool zero_copy)
      : descriptor_(io, fd),
        peer_(std::move(peer)),
        zero_copy_sender_(zero_copy ? ZeroCopySender::of(fd) : nullptr) {
    const int yes = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  }
  ~TcpSocket() override {
    *alive_ = false;
    forget_zero_copy();
  }

  void start(SocketHandler& handler) override {
    handler_ = &handler;
    wait_readable();
  }
  Moved read(std::span<std::byte> to) override {
    const ssize_t got = ::recv(descriptor_.native_handle(), to.data(), to.size(), MSG_DONTWAIT);
    return got == 0 && !to.empty() ? Moved{Got::kEnd, 0} : moved(got);
  }
  Moved write(std::span<const std::span<const std::byte>> segments) override {
    return moved(send_segments(descriptor_.native_handle(), segments));
  }
  std::size_t zero_copy_from() const override {
    return zero_copy_sender_ != nullptr && zero_copy_sender_->saves_copies() ? kZeroCopyFrom : SIZE_MAX;
  }
  Moved send_zero_copy(std::span<const std::byte> segment,
                       const std::shared_ptr<const void>& owner) override {
    zero_copy_sender_->take_back();
    return moved(zero_copy_sender_->send(segment, owner));
  }
  void pause_reading(bool pause) override {
    paused_ = pause;
    if (!pause && handler_ != nullptr && is_open() && !awaits_bytes_) wait_readable();
  }
  void want_write() override {
    descriptor_.async_wait(Descriptor::wait_write, [this, alive = alive_](const asio::error_code& error) {
      if (!error && *alive && is_open()) handler_->on_writable();
    });
  }
  std::string failure() const override { return std::strerror(error_); }
  void end_writing() override { ::shutdown(descriptor_.native_handle(), SHUT_WR); }
  void close() override {
    forget_zero_copy();
    asio::error_code ignored;
    descriptor_.close(ignored);
  }
  bool is_open() const override { return descriptor_.is_open(); }
  const std::string& peer() const override { return peer_; }

 private:
  Moved moved(ssize_t bytes) {
    if (bytes > 0) return {Got::kSome, static_cast<std::size_t>(bytes)};
    if (bytes == 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {Got::kNothing, 0};
    error_ = errno;
    return {Got::kFailed, 0};
  }
  void wait_readable() {
    awaits_bytes_ = true;
    descriptor_.async_wait(Descriptor::wait_read, [this, alive = alive_](const asio::error_code& error) {
      if (error || !*alive || !is_open()) return;
      awaits_bytes_ = false;
      if (zero_copy_sender_ != nullptr)
        zero_copy_sender_->take_back();  // completions of zero-copy sends also wake this
      if (!paused_) handler_->on_readable();
      if (*alive && is_open() && !paused_ && !awaits_bytes_) wait_readable();
    });
  }

  // Drops unsent zero-copy data: the kernel must not send memory whose owner is gone.
  void forget_zero_copy() {
    if (zero_copy_sender_ == nullptr || !is_open()) return;
    zero_copy_sender_->take_back();
    const linger drop{1, 0};
    if (!zero_copy_sender_->empty())
      ::setsockopt(descriptor_.native_handle(), SOL_SOCKET, SO_LINGER, &drop, sizeof drop);
  }

  Descriptor descriptor_;
  const std::string peer_;
  const std::unique_ptr<ZeroCopySender> zero_copy_sender_;  // may be null
  SocketHandler* handler_ = nullptr;
  int error_ = 0;
  bool paused_ = false, awaits_bytes_ = false;
  // Lets handlers that Asio calls later know that this object is gone.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class TcpSockets final : public SocketLayer {
 public:
  TcpSockets(const std::string& address, const TcpOptions& options)
      : listener_(std::in_place, address),
        address_(listener_->address()),
        zero_copy_(options.zero_copy && ZeroCopySender::of(listener_->fd()) != nullptr),
        lookup_(options.look_up) {
    if (options.keep_signals) keep_signals();
  }

  ~TcpSockets() override { give_signals_back(); }

  std::string address() const override { return address_; }
  std::size_t most_sockets() const override { return most_sockets_; }
  bool zero_copy() const override { return zero_copy_; }
  SteadyTime now() const override { return std::chrono::steady_clock::now(); }

  void start(SocketLayerHandler& handler, std::chrono::milliseconds tick, bool signals) override {
    handler_ = &handler;
    const int fd = ::fcntl(listener_->fd(), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) throw std::runtime_error("--listen " + address_ + ": " + std::strerror(errno));
    acceptor_.assign(fd);
    accept_next();
    tick_ = tick;
    tick_again();
    if (!signals) return;
    keep_signals();
    signals_.async_wait([this](const asio::error_code& error, int) {
      if (error) return;
      give_signals_back();  // the next signal ends the process
      handler_->on_stop();
    });
  }
  void stop_accepting() override {
    asio::error_code ignored;
    acceptor_.close(ignored);
    listener_.reset();
  }
  Result<std::unique_ptr<Socket>> connect(const std::string& address) override {
    const Result<int> fd = begin_connection(address, lookup_, connections_++);
    if (!fd) return fd.error();
    return std::unique_ptr<Socket>(std::make_unique<TcpSocket>(io_, *fd, address, zero_copy_));
  }
  void post(std::function<void()> job) override { asio::post(io_, std::move(job)); }
  void wait(SteadyTime deadline, const std::function<bool()>& done) override {
    if (deadline <= now())
      for (int k = 0; k < kJobsWithoutTime && io_.poll_one() > 0; ++k) {
      }
    while (!done() && io_.run_one_until(deadline) > 0) {
    }
  }

 private:
  void keep_signals() {
    if (keeps_signals_) return;
    for (std::size_t k = 0; k < kSignals.size(); ++k) {
      ::sigaction(kSignals[k], nullptr, &before_[k]);
      signals_.add(kSignals[k]);
    }
    keeps_signals_ = true;
  }
  // Restores the previous actions. Asio would restore the default actions, but process 1 of a container has
  // none.
  void give_signals_back() {
    signals_.clear();
    if (!std::exchange(keeps_signals_, false)) return;
    for (std::size_t k = 0; k < kSignals.size(); ++k) ::sigaction(kSignals[k], &before_[k], nullptr);
  }
  void accept_next() {
    acceptor_.async_wait(Descriptor::wait_read, [this](const asio::error_code& error) {
      if (error) return;
      accept_ready();
      if (!short_of_descriptors_ && !pauses_) accept_next();  // else the tick does it
    });
  }
  void accept_ready() {
    for (int k = 0; k < kAcceptsPerWake && listener_; ++k) {
      int fd = -1;
      const Listener::Accepted taken = listener_->accept(fd);
      if (taken == Listener::Accepted::kNothing) return;
      if (taken == Listener::Accepted::kNoDescriptors) {
        short_of_descriptors_ = true;
        return handler_->on_no_descriptors();
      }
      std::string peer = peer_of(fd);
      if (!handler_->wants(peer)) {
        ::close(fd);
        if (++unwanted_ < kMostUnwanted) continue;
        pauses_ = true;  // the rest wait in the kernel's queue, where they cost less
        return;
      }
      handler_->on_accepted(std::make_unique<TcpSocket>(io_, fd, std::move(peer), zero_copy_));
    }
  }
  void tick_again() {
    timer_.expires_after(tick_);
    timer_.async_wait([this](const asio::error_code& error) {
      if (error) return;
      handler_->on_tick();
      unwanted_ = 0;
      const bool paused = std::exchange(pauses_, false);
      if ((std::exchange(short_of_descriptors_, false) || paused) && acceptor_.is_open()) accept_next();
      tick_again();
    });
  }

  std::optional<Listener> listener_;  // empty after stop_accepting()
  const std::string address_;
  const bool zero_copy_;
  const std::size_t most_sockets_ = raise_descriptor_limit();
  NameLookup lookup_;
  std::size_t connections_ = 0;  // connections begun
  SocketLayerHandler* handler_ = nullptr;
  std::chrono::milliseconds tick_{0};
  bool short_of_descriptors_ = false;
  int unwanted_ = 0;  // connections closed at once since the last tick
  bool pauses_ = false;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  Descriptor acceptor_{io_};
  asio::steady_timer timer_{io_};
  asio::signal_set signals_{io_};
  bool keeps_signals_ = false;
  std::array<struct sigaction, kSignals.size()> before_{};  // the previous actions of the signals
};

}  // namespace

std::unique_ptr<SocketLayer> listen_on_tcp(const std::string& address, const TcpOptions& options) {
  try {
    return std::make_unique<TcpSockets>(address, options);
  } catch (const std::system_error& error) {  // from Asio
    throw std::runtime_error("--listen " + address + ": " + error.code().message());
  }
}

}  // namespace gradwire
