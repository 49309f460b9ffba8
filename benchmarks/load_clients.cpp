#include "benchmarks/load_clients.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "benchmarks/load_replies.h"
#include "fl_client/client.h"
#include "proto/security/tls.h"
#include "proto/wire/back_off.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"

namespace gradwire::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kReconnectPause{200};    // before a peer reconnects that the server disconnected
constexpr milliseconds kNanReconnectPause{50};  // the same for a client that sends NaN
constexpr milliseconds kSlowByte{300};          // pause between two bytes of a slow connection
constexpr std::chrono::seconds kHeartbeat{10};
constexpr std::size_t kGarbageBytes = 600;

std::string hello_of(std::uint32_t client, std::uint32_t clients) {
  wire::Hello hello;
  hello.set_protocol(kWireVersion);
  hello.set_client_name("c" + std::to_string(client));
  hello.set_part_index(client);
  hello.set_part_count(clients);
  return control_frame(FrameType::kHello, hello);
}

std::string join_of_load() {
  wire::Join join;
  join.set_columns(0);
  join.set_sample_count(1);
  join.set_test_count(0);
  return control_frame(FrameType::kJoin, join);
}

class LoadClients {
 public:
  // `in_run` counts the clients that are in the run.
  LoadClients(const LoadOptions& options, std::atomic<std::uint32_t>& in_run)
      : options_(options),
        in_run_(in_run),
        replies_(load_replies_of(options)),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    most_load_sockets();
    server_.sin_family = AF_INET;
    server_.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(options.server.substr(options.server.rfind(':') + 1))));
    server_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!options.ca_pin.empty()) tls_.emplace(TrustedServer{{}, options.ca_pin});
    for (std::uint32_t k = 0; k < options.clients() + options.slow + options.garbage; ++k) {
      LoadPeer& peer = *peers_.emplace_back(std::make_unique<LoadPeer>(LoadPeer{k, kind_of(k)}));
      if (options.back_off_cap)
        peer.back_off.emplace(ClientSettings{}.back_off_base, *options.back_off_cap, k);
    }
  }
  ~LoadClients() {
    for (const auto& peer : peers_)
      if (peer->fd >= 0) ::close(peer->fd);
    ::close(epoll_);
  }
  LoadClients(const LoadClients&) = delete;
  LoadClients& operator=(const LoadClients&) = delete;

  // Returns false if a well-behaved client lost its connection and does not retry.
  bool run() {
    std::array<epoll_event, 256> ready;
    while (options_.good == 0 || shutdowns_ < options_.good) {
      if (!open_more()) return false;
      const int count =
          ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), milliseconds_to_wait());
      for (int k = 0; k < count; ++k) {
        const epoll_event& event = ready[static_cast<std::size_t>(k)];
        LoadPeer& peer = *static_cast<LoadPeer*>(event.data.ptr);
        if (!serve(peer, event.events) && !closed(peer)) return false;
      }
      if (!look_after_all()) return false;
    }
    return true;
  }

 private:
  enum class Kind : std::uint8_t { kGood, kSilent, kNan, kSlow, kGarbage };
  struct LoadPeer {
    std::uint32_t number;
    Kind kind;
    int fd = -1;
    std::uint32_t watched = 0;  // events of epoll
    std::unique_ptr<StreamFilter> filter{};
    std::string in{}, out{};  // received frames; bytes for the socket
    std::string unsent{};     // for the filter, once it is ready
    std::size_t sent = 0;     // number of bytes of `out` that the socket has taken
    std::optional<BackOff> back_off{};
    milliseconds retry_after{0};
    bool is_connecting = false, is_opening = false, is_welcome = false, in_run = false, is_over = false;

    bool is_client() const { return kind == Kind::kGood || kind == Kind::kSilent || kind == Kind::kNan; }
  };

  Kind kind_of(std::uint32_t k) const {
    if (k < options_.good) return Kind::kGood;
    if (k < options_.clients()) return options_.kind == LoadOptions::Bad::kNan ? Kind::kNan : Kind::kSilent;
    return k < options_.clients() + options_.slow ? Kind::kSlow : Kind::kGarbage;
  }

  // ---- time ----

  int milliseconds_to_wait() const {
    Clock::time_point next = heartbeat_;
    if (!due_.empty()) next = std::min(next, due_.begin()->first);
    const auto wait = std::chrono::ceil<milliseconds>(next - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(wait, 0, 1000));
  }
  // Sends heartbeats for the clients, reconnects peers whose pause is over, and sends the next byte of each
  // slow peer. The Hello of a slow peer never ends.
  bool look_after_all() {
    const auto now = Clock::now();
    if (now >= heartbeat_) {
      heartbeat_ = now + kHeartbeat;
      for (const auto& peer : peers_)
        if (peer->is_welcome && peer->out.empty()) say(*peer, heartbeat_frame());
    }
    while (!due_.empty() && due_.begin()->first <= now) {
      LoadPeer& peer = *due_.begin()->second;
      due_.erase(due_.begin());
      if (peer.fd < 0) {
        if (!open(peer) && !closed(peer)) return false;
      } else {
        say(peer, slow_byte_);
        due_.emplace(now + kSlowByte, &peer);
      }
    }
    return true;
  }

  // ---- connections ----

  // Opens the first connections of further peers, while fewer than most_opening clients are opening one.
  bool open_more() {
    for (; opened_ < peers_.size() && opening_ < options_.most_opening; ++opened_)
      if (!open(*peers_[opened_]) && !closed(*peers_[opened_])) return false;
    return true;
  }
  bool open(LoadPeer& peer) {
    peer.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (peer.fd < 0) return false;
    const int yes = 1;
    ::setsockopt(peer.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const bool is_connected =
        ::connect(peer.fd, reinterpret_cast<const sockaddr*>(&server_), sizeof server_) == 0;
    if (!is_connected && errno != EINPROGRESS) return false;
    peer.is_connecting = !is_connected;
    peer.watched = is_connected ? EPOLLIN : EPOLLIN | EPOLLOUT;
    epoll_event event{};
    event.events = peer.watched;
    event.data.ptr = &peer;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, peer.fd, &event);
    if (peer.is_client() && options_.greets) {
      peer.is_opening = true;
      opening_ += 1;
    }
    if (is_connected) connected(peer);
    return true;
  }
  void connected(LoadPeer& peer) {
    peer.is_connecting = false;
    if (tls_ && peer.is_client()) peer.filter = tls_->connect("127.0.0.1");
    if (!options_.greets) {
      set_in_run(peer, true);
    } else if (peer.kind == Kind::kGarbage) {
      std::string noise(kGarbageBytes, '\0');
      for (char& c : noise) c = static_cast<char>(random_ = random_ * 1664525 + 1013904223);
      return say(peer, noise);
    } else if (peer.kind == Kind::kSlow) {
      due_.emplace(Clock::now(), &peer);
    } else {
      return say(peer, hello_of(peer.number, options_.clients()));
    }
    drain(peer);
  }
  // Handles a closed connection. Returns false if a well-behaved client lost it and does not retry.
  bool closed(LoadPeer& peer) {
    if (peer.fd >= 0) ::close(peer.fd);
    peer.fd = -1;
    set_in_run(peer, false);
    end_opening(peer);
    peer.is_welcome = false;
    peer.filter.reset();
    peer.in.clear();
    peer.out.clear();
    peer.unsent.clear();
    peer.sent = 0;
    if (peer.is_over) return true;
    std::erase_if(due_, [&](const auto& entry) { return peer.kind == Kind::kSlow && entry.second == &peer; });
    milliseconds wait = peer.kind == Kind::kNan ? kNanReconnectPause : kReconnectPause;
    if (peer.back_off) wait = peer.back_off->next(std::exchange(peer.retry_after, milliseconds(0)));
    due_.emplace(Clock::now() + wait, &peer);
    return peer.back_off || peer.kind != Kind::kGood;
  }
  void set_in_run(LoadPeer& peer, bool is) {
    if (std::exchange(peer.in_run, is) == is) return;
    in_run_.fetch_add(is ? 1 : UINT32_MAX, std::memory_order_relaxed);
  }
  void end_opening(LoadPeer& peer) { opening_ -= std::exchange(peer.is_opening, false) ? 1 : 0; }
  void welcome(LoadPeer& peer) {
    peer.is_welcome = true;
    end_opening(peer);
    say(peer, join_);
  }

  // ---- bytes ----

  void say(LoadPeer& peer, const std::string& bytes) {
    if (!peer.filter) {
      peer.out += bytes;
    } else if (peer.filter->ready()) {
      (void)peer.filter->write(std::as_bytes(std::span(bytes)));
    } else {
      peer.unsent += bytes;
    }
    drain(peer);
  }
  // Moves bytes from the filter to the socket.
  void drain(LoadPeer& peer) {
    if (peer.filter && peer.filter->ready() && !peer.unsent.empty())
      say(peer, std::exchange(peer.unsent, {}));
    if (peer.filter)
      for (auto bytes = peer.filter->outgoing(); !bytes.empty(); bytes = peer.filter->outgoing()) {
        peer.out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        peer.filter->sent(bytes.size());
      }
    flush(peer);
  }
  void flush(LoadPeer& peer) {
    while (peer.sent < peer.out.size()) {
      const ssize_t n = ::send(peer.fd, peer.out.data() + peer.sent, peer.out.size() - peer.sent,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) break;
      peer.sent += static_cast<std::size_t>(n);
    }
    if (peer.sent == peer.out.size()) peer.out.clear(), peer.sent = 0;
    const std::uint32_t wanted = peer.out.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
    if (std::exchange(peer.watched, wanted) == wanted) return;
    epoll_event event{};
    event.events = wanted;
    event.data.ptr = &peer;
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, peer.fd, &event);
  }

  // Handles events of the socket. Returns false if the connection is over.
  bool serve(LoadPeer& peer, std::uint32_t events) {
    if (peer.fd < 0) return true;
    if (peer.is_connecting) {
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(peer.fd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) return false;
      connected(peer);
    } else if ((events & EPOLLOUT) != 0) {
      flush(peer);
    }
    for (;;) {
      const ssize_t n = ::recv(peer.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN)) return false;
      if (n < 0) return true;
      if (!take(peer, std::span(buffer_).first(static_cast<std::size_t>(n)))) return false;
      while (take_frame(peer)) {
      }
      if (peer.is_over) return false;
      if (static_cast<std::size_t>(n) < buffer_.size()) return true;
    }
  }
  bool take(LoadPeer& peer, std::span<const char> arrived) {
    if (!peer.filter) {
      peer.in.append(arrived.data(), arrived.size());
      return true;
    }
    if (!peer.filter->feed(std::as_bytes(arrived))) return false;
    for (;;) {
      const auto got = peer.filter->read(std::as_writable_bytes(std::span(plain_)));
      if (!got) return false;
      if (*got == 0) break;
      peer.in.append(plain_.data(), *got);
    }
    drain(peer);
    return true;
  }

  // ---- frames ----

  bool take_frame(LoadPeer& peer) {
    if (peer.in.size() < kPrefixBytes) return false;
    std::array<std::byte, kPrefixBytes> raw;
    std::memcpy(raw.data(), peer.in.data(), kPrefixBytes);
    const auto prefix = read_prefix(raw, std::uint64_t{1} << 40, false);
    if (!prefix) return false;
    const std::size_t size = kPrefixBytes + prefix->header_len + prefix->payload_len;
    if (peer.in.size() < size) return false;
    const std::string header = peer.in.substr(kPrefixBytes, prefix->header_len);
    peer.in.erase(0, size);
    if (prefix->type == FrameType::kWelcome) welcome(peer);
    if (prefix->type == FrameType::kStart) set_in_run(peer, true);
    if (prefix->type == FrameType::kRound) answer(peer, header);
    if (prefix->type == FrameType::kError) {
      wire::ErrorMessage why;
      if (why.ParseFromString(header)) peer.retry_after = milliseconds(why.retry_after_ms());
    }
    return true;
  }
  void answer(LoadPeer& peer, const std::string& header) {
    wire::Round round;
    round.ParseFromString(header);
    if (round.request() == wire::REQUEST_GOODBYE) {
      wire::Received heard;
      heard.set_request_id(round.request_id());
      heard.set_receipt(wire::RECEIPT_ACCEPTED);
      say(peer, control_frame(FrameType::kReceived, heard));
      peer.is_over = true;
      shutdowns_ += peer.kind == Kind::kGood ? 1 : 0;
      return;
    }
    if (peer.kind == Kind::kSilent) return;
    say(peer,
        replies_->reply(peer.number, round.request_id(), round.body().round(), peer.kind == Kind::kNan));
    if (peer.back_off) peer.back_off->reset();
  }

  const LoadOptions options_;
  std::atomic<std::uint32_t>& in_run_;
  const std::unique_ptr<LoadReplies> replies_;
  const int epoll_;
  sockaddr_in server_{};
  std::optional<TlsClient> tls_;
  std::vector<std::unique_ptr<LoadPeer>> peers_;
  std::size_t opened_ = 0;                           // peers whose first connection was opened
  std::uint32_t opening_ = 0;                        // clients that are connecting or in the handshake
  std::multimap<Clock::time_point, LoadPeer*> due_;  // peers that retry or send their next byte
  std::vector<char> buffer_ = std::vector<char>(1 << 16), plain_ = std::vector<char>(1 << 16);
  const std::string join_ = join_of_load(), slow_byte_ = hello_of(0, 1).substr(0, 1);
  std::uint32_t shutdowns_ = 0, random_ = 1;
  Clock::time_point heartbeat_ = Clock::now() + kHeartbeat;
};

}  // namespace

std::uint32_t most_load_sockets() {
  constexpr rlim_t kOtherFiles = 64;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t most = limit.rlim_cur - std::min(limit.rlim_cur, kOtherFiles);
  return static_cast<std::uint32_t>(std::min<rlim_t>(most, UINT32_MAX));
}

struct LoadProcess::LoadProgress {
  std::atomic<std::uint32_t> in_run{0};
};

LoadProcess::LoadProcess(const LoadOptions& options) {
  void* const place =
      ::mmap(nullptr, sizeof(LoadProgress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) throw std::bad_alloc();
  progress_ = new (place) LoadProgress;
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close_range(STDERR_FILENO + 1, ~0u, 0);  // otherwise this process would keep the server's sockets open
  try {
    ::_exit(LoadClients(options, progress_->in_run).run() ? 0 : 1);
  } catch (...) {  // do not unwind into the code of the parent process
    ::_exit(2);
  }
}

LoadProcess::~LoadProcess() {
  end();
  ::munmap(progress_, sizeof *progress_);
}

void LoadProcess::end() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(std::exchange(pid_, -1), nullptr, 0);
}

std::uint32_t LoadProcess::in_run() const { return progress_->in_run.load(std::memory_order_relaxed); }

bool LoadProcess::ended() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ <= 0;
}

}  // namespace gradwire::bench
