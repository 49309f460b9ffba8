// Many peers of one server in one process, on as many sockets: clients that answer each request with vectors
// that depend on the client and the round alone, and others that mean no good. Speaks the protocol itself: a
// thousand clients of the library would be a thousand threads.
#pragma once

#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <memory>
#include <string>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "tests/support/fake_client.h"

namespace gradwire {

struct LoadOptions {
  std::string server{};
  std::uint32_t honest = 0, bad = 0;  // clients 0, 1, ..., honest - 1, and the next ones
  enum class Bad { kSilent, kNan } kind = Bad::kSilent;
  std::uint32_t slow = 0, garbage = 0;  // connections of strangers at a time
  std::uint32_t dim = 0;
  std::uint32_t clients() const { return honest + bad; }
};

// All of them in one thread.
class LoadClients {
 public:
  explicit LoadClients(const LoadOptions& options)
      : options_(options),
        codec_({1,
                options.dim,
                options.clients(),
                parse_compressor("identity", options.dim),
                {ZstdMode::Kind::kOff, 0}}),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    for (std::uint32_t k = 0; k < options.clients() + options.slow + options.garbage; ++k)
      peers_.push_back(std::make_unique<Peer>(Peer{k, kind_of(k)}));
  }

  // Until all honest clients have heard the goodbye. False: the server refused one of them.
  bool run() {
    for (const auto& peer : peers_) open(*peer);
    std::array<epoll_event, 256> ready;
    while (goodbyes_ < options_.honest) {
      const int count = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), 50);
      for (int k = 0; k < count; ++k) {
        Peer& peer = *static_cast<Peer*>(ready[static_cast<std::size_t>(k)].data.ptr);
        if (!serve(peer) && !closed(peer)) return false;
      }
      look_after_all();
    }
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Kind { kHonest, kSilent, kNan, kSlow, kGarbage };
  struct Peer {
    std::uint32_t number;
    Kind kind;
    int fd = -1;
    std::string in{}, out{};
    std::size_t sent = 0;     // of out
    Clock::time_point due{};  // a stranger does something; whoever is not connected tries again
    bool is_over = false;
  };

  Kind kind_of(std::uint32_t k) const {
    if (k < options_.honest) return Kind::kHonest;
    if (k < options_.clients()) return options_.kind == LoadOptions::Bad::kNan ? Kind::kNan : Kind::kSilent;
    return k < options_.clients() + options_.slow ? Kind::kSlow : Kind::kGarbage;
  }

  void open(Peer& peer) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(options_.server.substr(options_.server.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(peer.fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
      closed(peer);
      return;
    }
    ::fcntl(peer.fd, F_SETFL, O_NONBLOCK);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &peer;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, peer.fd, &event);
    peer.in.clear();
    peer.out.clear();
    peer.sent = 0;
    if (peer.kind == Kind::kGarbage) {
      std::string noise(600, '\0');
      for (char& c : noise) c = static_cast<char>(random_ = random_ * 1664525 + 1013904223);
      say(peer, noise);
    } else if (peer.kind != Kind::kSlow) {
      say(peer, FakeClient::hello_frame("c" + std::to_string(peer.number), peer.number, options_.clients()));
    }
  }
  // The server has closed the connection; false: that of an honest client.
  bool closed(Peer& peer) {
    ::close(peer.fd);
    peer.fd = -1;
    peer.due = Clock::now() + std::chrono::milliseconds(peer.kind == Kind::kNan ? 50 : 200);
    return peer.is_over || peer.kind != Kind::kHonest;
  }

  // Strangers come again, and the slow ones send a byte of a Hello that has no end; clients show that they
  // live.
  void look_after_all() {
    const auto now = Clock::now();
    const bool beat = now >= heartbeat_;
    if (beat) heartbeat_ = now + std::chrono::seconds(10);
    for (const auto& peer : peers_) {
      if (peer->is_over) continue;
      const bool is_stranger = peer->kind == Kind::kSlow || peer->kind == Kind::kGarbage;
      if (peer->fd < 0) {
        if (now >= peer->due) open(*peer);
      } else if (beat && !is_stranger && peer->out.empty()) {
        say(*peer, heartbeat_frame());
      } else if (peer->kind == Kind::kSlow && now >= peer->due) {
        peer->due = now + std::chrono::milliseconds(300);
        say(*peer, FakeClient::hello_frame("slow").substr(0, 1));
      }
    }
  }

  void say(Peer& peer, const std::string& bytes) {
    peer.out += bytes;
    flush(peer);
  }
  void flush(Peer& peer) {
    while (peer.sent < peer.out.size()) {
      const ssize_t n = ::send(peer.fd, peer.out.data() + peer.sent, peer.out.size() - peer.sent,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) break;
      peer.sent += static_cast<std::size_t>(n);
    }
    if (peer.sent == peer.out.size()) peer.out.clear(), peer.sent = 0;
    epoll_event event{};
    event.events = peer.out.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
    event.data.ptr = &peer;
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, peer.fd, &event);
  }

  // False: the connection is over.
  bool serve(Peer& peer) {
    if (!peer.out.empty()) flush(peer);
    for (;;) {
      const ssize_t n = ::recv(peer.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN)) return false;
      if (n < 0) return true;
      peer.in.append(buffer_.data(), static_cast<std::size_t>(n));
      while (take_frame(peer)) {
      }
      if (peer.is_over) return false;
      if (static_cast<std::size_t>(n) < buffer_.size()) return true;
    }
  }
  bool take_frame(Peer& peer) {
    if (peer.in.size() < kPrefixBytes) return false;
    std::array<std::byte, kPrefixBytes> raw;
    std::memcpy(raw.data(), peer.in.data(), kPrefixBytes);
    const auto prefix = read_prefix(raw, std::uint64_t{1} << 40, false);
    if (!prefix) return false;
    const std::size_t size = kPrefixBytes + prefix->header_len + prefix->payload_len;
    if (peer.in.size() < size) return false;
    const std::string header = peer.in.substr(kPrefixBytes, prefix->header_len);
    peer.in.erase(0, size);
    if (prefix->type == FrameType::kWelcome) say(peer, join_frame());
    if (prefix->type == FrameType::kRound) answer(peer, header);
    return true;
  }
  static std::string join_frame() {
    wire::Join join;
    join.set_columns(0);
    join.set_sample_count(1);
    join.set_test_count(0);
    return control_frame(FrameType::kJoin, join);
  }

  void answer(Peer& peer, const std::string& header) {
    wire::Round round;
    round.ParseFromString(header);
    if (round.request() == wire::REQUEST_GOODBYE) {
      wire::Received heard;
      heard.set_ticket(round.ticket());
      heard.set_receipt(wire::RECEIPT_ACCEPTED);
      say(peer, control_frame(FrameType::kReceived, heard));
      peer.is_over = true;
      goodbyes_ += peer.kind == Kind::kHonest;
      return;
    }
    if (peer.kind == Kind::kSilent) return;
    values_.resize(options_.dim);
    for (std::size_t j = 0; j < values_.size(); ++j)
      values_[j] =
          static_cast<double>((peer.number * 31 + round.body().round() * 17 + j * 7) % 101) / 100 - 0.5;
    if (peer.kind == Kind::kNan)
      values_[peer.number % options_.dim] = std::numeric_limits<double>::quiet_NaN();
    Uplink<double> up;
    up.ticket = round.ticket();
    up.round = round.body().round();
    up.client = peer.number;
    up.grad_calls = 1;
    up.parts = {Payload<double>::dense(values_)};
    say(peer, bytes_of(codec_.encode(up)));
  }

  const LoadOptions options_;
  Codec<double> codec_;
  const int epoll_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<char> buffer_ = std::vector<char>(1 << 16);
  Vec<double> values_;
  std::uint32_t goodbyes_ = 0, random_ = 1;
  Clock::time_point heartbeat_ = Clock::now();
};

// The same as a process of its own. REQUIRES: this one has one thread.
class LoadProcess {
 public:
  explicit LoadProcess(const LoadOptions& options) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(LoadClients(options).run() ? 0 : 1);
  }
  LoadProcess(const LoadProcess&) = delete;
  LoadProcess& operator=(const LoadProcess&) = delete;
  ~LoadProcess() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  // The exit code.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }

 private:
  pid_t pid_;
};

}  // namespace gradwire
