#include "fl_server/relay/relay.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "fl_server/access/server_identity.h"
#include "fl_server/net/tcp_sockets.h"
#include "fl_server/relay/relay_local.h"
#include "fl_server/relay/relay_sums.h"
#include "fl_server/sessions/session_manager.h"
#include "fl_server/sessions/unauthenticated_peers.h"
#include "proto/security/challenge.h"
#include "proto/security/identity.h"
#include "proto/wire/address.h"
#include "proto/wire/back_off.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/wire.pb.h"
#include "storage/atomic_file.h"

namespace gradwire {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kServerAwayMs = 500;      // retry time for clients while the server is away
constexpr milliseconds kShutdownTimeout{20'000};  // time without a server after a shutdown has begun
constexpr std::size_t kMostClients = 1 << 16;
constexpr std::size_t kMostUnauthenticated = 1024;
constexpr std::size_t kMostKnown = 4096;               // remembered addresses of clients
constexpr std::uint32_t kClientsOfSite = 1000;         // for the limits of handshakes
constexpr std::uint64_t kMostBytesWaiting = 64 << 20;  // bytes that may wait for the server

class Relay final : public RelayRun, public SocketLayerHandler, public FrameHandler, public LocalOwner {
 public:
  Relay(const RelayOptions& options, std::unique_ptr<SocketLayer> sockets)
      : options_(options),
        times_(options.times),
        counts_{.server_metrics = options.server_metrics != nullptr ? *options.server_metrics : own_metrics_,
                .receive_budget = {}},
        sockets_(std::move(sockets)),
        open_from_(options.most_from_address),
        handshakes_(options.handshakes),
        back_off_(options.back_off_base, options.back_off_cap, options.jitter_seed),
        last_contact_(sockets_->now()),
        next_try_(last_contact_) {
    if (options.aggregate)
      sums_ = std::make_unique<RelaySums>([this](const Outgoing& message) { pass_up(message); },
                                          [this](const LogLine& line) { log(line); });
  }

  void run();
  void start() override;
  bool over() const override;

  void log(const LogLine& line) const {
    if (options_.log) options_.log(line);
  }
  void pass_up(const Outgoing& message) {
    if (!joined_) return;
    upstream_->send(message);
    if (upstream_->bytes_waiting() > kMostBytesWaiting) pause_clients(true);
  }
  void sent_hello(std::uint32_t channel) override { unauthenticated_.remove(channel); }
  void from_local(std::uint32_t channel, ForwardedFrame& forwarded) override {
    const bool is_reply = forwarded.prefix.type == FrameType::kReply;
    if (!(is_reply && sums_ && sums_->take(channel, forwarded))) pass_up(forwarded.for_channel(channel));
  }
  void local_left(Local& local, const std::string& why) override;
  void erase(std::uint32_t channel) override {
    unauthenticated_.remove(channel);
    open_from_.remove(origin_of(locals_.at(channel)->connection().peer()));
    locals_.erase(channel);
  }

 private:
  bool wants(const std::string& peer) override;
  void on_accepted(std::unique_ptr<Socket> socket) override;
  void reject_unauthenticated();
  void close_unauthenticated(std::uint64_t channel, Ending ending);
  void limit_origin(Local& local);
  void on_no_descriptors() override {
    counts_.server_metrics.end(Ending::kNoDescriptors);
    if (!unauthenticated_.empty()) reject_unauthenticated();
    if (!std::exchange(warned_of_descriptors_, true))
      log(LogLine::warning(
          "no file descriptors are left: closing connections of clients; raise 'ulimit -n'"));
  }
  void on_tick() override;
  void on_stop() override { stopped_ = true; }

  Result<std::span<const std::span<std::byte>>> on_header(const Prefix& prefix,
                                                          std::span<const std::byte> header) override;
  Status on_frame() override;
  void on_closed(const std::string& why) override;
  void on_shut() override;

  milliseconds without_server() const;
  // Pauses reading from the clients while the server is slow to read.
  void pause_clients(bool pause);
  void connect();
  Status from_server();
  Status prove_to_server(std::span<const std::byte> header);
  Status joined(const wire::Relay& answer);
  Status pass_down(Local& local);
  Status complete_round();
  void pass_round(Local& local);

  const RelayOptions& options_;
  WireTimes times_;            // with the heartbeats of the server
  ServerMetrics own_metrics_;  // used if the options name no metrics
  ConnectionCounts counts_;
  // Declared before the connections, so it is destroyed after them.
  const std::unique_ptr<SocketLayer> sockets_;
  std::map<std::uint32_t, std::unique_ptr<Local>> locals_;  // by channel
  std::uint32_t channels_ = 0;                              // channels opened so far; numbers are not reused
  UnauthenticatedPeers unauthenticated_;                    // by channel
  OriginLimit open_from_;
  HandshakeLimit handshakes_;
  std::set<std::string> known_;  // origins of clients that received a Start

  // The connection to the server.
  std::unique_ptr<Connection> upstream_;
  bool joined_ = false;
  ForwardedFrame forwarded_;
  wire::Round round_;  // the header in forwarded_, if that is a Round
  std::uint64_t max_payload_ = 0;
  std::optional<ForwardedFrame> body_;  // the last Round with a body; its header is the body's
  BackOff back_off_;
  SteadyTime last_contact_, next_try_;
  std::string last_trouble_;
  milliseconds retry_after_{0};
  std::optional<std::string> refused_;  // reason of a fatal refusal
  bool retry_helps_ = false;            // only if refused_: the refusal names a time for a retry
  std::unique_ptr<RelaySums> sums_;     // null if the relay forwards each reply

  bool stopped_ = false, is_over_ = false, announced_shutdown_ = false, paused_ = false,
       warned_of_descriptors_ = false;
};

// ---- clients ----

void Relay::local_left(Local& local, const std::string& why) {
  if (sums_) sums_->left(local.channel(), local.server_closed);
  if (local.sent_hello() && !local.server_closed)
    pass_up(Outgoing::control(on_channel(error_frame(why, false, 0), local.channel())));
  unauthenticated_.add(local.channel(), local.connection().peer());  // it may still read the reason
  if (!local.received_shutdown && !why.empty())
    log("a client at " + local.connection().peer() + " (connection " + std::to_string(local.channel()) +
        ") disconnected: " + why);
}

bool Relay::wants(const std::string& peer) {
  const std::string origin = origin_of(peer);
  if (handshakes_.take(origin, known_.contains(origin), sockets_->now())) return true;
  counts_.server_metrics.end(Ending::kFromOneOrigin);
  log(LogLine::warning("too many new handshakes, the last one from " + origin + "; closing its connection"));
  return false;
}

void Relay::on_accepted(std::unique_ptr<Socket> socket) {
  const bool is_full =
      unauthenticated_.size() >= kMostUnauthenticated || counts_.open + 1 >= sockets_->most_sockets();
  if (is_full && !unauthenticated_.empty()) reject_unauthenticated();
  if (locals_.size() >= kMostClients) return;
  counts_.server_metrics.accepted.add();
  const std::uint32_t channel = ++channels_;
  unauthenticated_.add(channel, socket->peer());
  auto& local = locals_[channel] =
      std::make_unique<Local>(*this, channel, *sockets_, std::move(socket), times_, counts_);
  local->connection().start();
  local->connection().pause_reading(paused_);
  warned_of_descriptors_ = false;
  if (!joined_) local->connection().refuse("this relay has no server at the moment", false, kServerAwayMs);
  limit_origin(*local);
}

// Closes the oldest unauthenticated connection from an address that has too many connections.
void Relay::limit_origin(Local& local) {
  const std::string origin = origin_of(local.connection().peer());
  if (!open_from_.add(origin)) return;
  log(LogLine::warning("more than " + std::to_string(options_.most_from_address) + " connections come from " +
                       origin + "; closing the oldest unauthenticated one"));
  const std::uint64_t oldest = *unauthenticated_.first_from(origin);  // the new one if there is no other
  if (oldest != local.channel()) return close_unauthenticated(oldest, Ending::kFromOneOrigin);
  counts_.server_metrics.end(Ending::kFromOneOrigin);
  local.connection().refuse("too many connections come from " + origin, false, kOriginRetryMs);
}

void Relay::reject_unauthenticated() {
  log(LogLine::warning("too many unauthenticated connections, mostly from " +
                       unauthenticated_.largest_origin() + "; closing the oldest"));
  close_unauthenticated(unauthenticated_.eviction_candidate(), Ending::kEvicted);
}

void Relay::close_unauthenticated(std::uint64_t channel, Ending ending) {
  unauthenticated_.remove(channel);
  counts_.server_metrics.end(ending);
  locals_.at(static_cast<std::uint32_t>(channel))->connection().close("");
}

// ---- the server ----

void Relay::pause_clients(bool pause) {
  if (std::exchange(paused_, pause) == pause) return;
  for (const auto& [channel, local] : locals_) local->connection().pause_reading(pause);
}

void Relay::connect() {
  next_try_ = SteadyTime::max();
  auto socket = sockets_->connect(options_.upstream);
  if (!socket) return on_closed(socket.error().message);
  upstream_ = std::make_unique<Connection>(*sockets_, std::move(*socket), times_, *this, counts_);
  upstream_->carry_channels();
  upstream_->start();
  wire::Relay hello;
  hello.set_protocol(kWireVersion);
  if (sums_) hello.set_adds(true);
  if (options_.credentials) {
    const PublicKey key = options_.credentials->key.public_key();
    hello.set_name(options_.credentials->name);
    hello.set_public_key(key.bytes.data(), key.bytes.size());
  }
  if (!sums_) hello.set_pieces(true);
  upstream_->send(Outgoing::control(control_frame(FrameType::kRelay, hello)));
  upstream_->expect_heartbeats();
}

Result<std::span<const std::span<std::byte>>> Relay::on_header(const Prefix& prefix,
                                                               std::span<const std::byte> header) {
  last_contact_ = sockets_->now();
  return forwarded_.begin(prefix, header);
}

Status Relay::on_frame() {
  const std::uint32_t channel = forwarded_.prefix.channel;
  if (channel == 0) return from_server();
  if (forwarded_.prefix.type == FrameType::kRound) {
    if (Status status = complete_round(); !status) return status;
  }
  const auto local = locals_.find(channel);
  if (local == locals_.end() || !local->second->connection().open()) return Unit{};  // the client has left
  return pass_down(*local->second);
}

Status Relay::from_server() {
  const auto header = std::as_bytes(std::span(forwarded_.header));
  switch (forwarded_.prefix.type) {
    case FrameType::kHeartbeat: return Unit{};
    case FrameType::kRelay: {
      wire::Relay answer;
      if (Status status = parse_control(header, answer); !status) return status;
      if (!answer.has_asked()) return joined(answer);
      if (sums_) sums_->asked_all(answer.asked());
      return Unit{};
    }
    case FrameType::kChallenge: return prove_to_server(header);
    case FrameType::kError: {
      wire::ErrorMessage error;
      if (Status status = parse_control(header, error); !status) return status;
      const std::string message = "the server says: " + one_line(error.message());
      retry_after_ = milliseconds(error.retry_after_ms());
      if (error.fatal()) {
        refused_ = message;
        retry_helps_ = retry_after_.count() > 0;
      }
      upstream_->close(message);
      return Unit{};
    }
    default: return Error{"a message for a client has no channel"};
  }
}

Status Relay::prove_to_server(std::span<const std::byte> header) {
  Result<std::string> proof = answer_challenge(header, options_.credentials);
  if (!proof) {
    refused_ = proof.error().message;
    return proof.error();
  }
  upstream_->send(Outgoing::control(*proof));
  return Unit{};
}

Status Relay::joined(const wire::Relay& answer) {
  if (answer.over()) {
    is_over_ = announced_shutdown_ = true;
    upstream_->close("the run is over");
    return Unit{};
  }
  // Clients learn the same interval from the server's Welcome.
  if (answer.has_heartbeat_ms()) times_.heartbeat = milliseconds(limited_heartbeat_ms(answer.heartbeat_ms()));
  max_payload_ = answer.max_payload();
  upstream_->set_max_payload(max_payload_);
  if (sums_ && max_payload_ > 0) sums_->allow(answer.adds());
  if (std::exchange(joined_, true)) return Unit{};
  back_off_.reset();
  log("joined the server at " + options_.upstream + "; clients can connect");
  return Unit{};
}

Status Relay::pass_down(Local& local) {
  if (sums_ && !sums_->watch(local.channel(), forwarded_)) return Unit{};
  const auto header = std::as_bytes(std::span(forwarded_.header));
  if (forwarded_.prefix.type == FrameType::kRound) {
    pass_round(local);
    return Unit{};
  }
  if (forwarded_.prefix.type == FrameType::kStart) {
    local.connection().set_max_payload(max_payload_);
    if (known_.size() >= kMostKnown) known_.erase(known_.begin());
    known_.insert(origin_of(local.connection().peer()));
  }
  if (forwarded_.prefix.type != FrameType::kError) {
    local.connection().send(forwarded_.for_channel(0));
    return Unit{};
  }
  wire::ErrorMessage error;
  if (Status status = parse_control(header, error); !status) return status;
  local.server_closed = true;
  local.connection().refuse(error.message(), error.fatal(), error.retry_after_ms());
  return Unit{};
}

// Puts the body into a request that refers to an earlier body. Does so even if the client has left, because
// later requests may refer to the body of this one.
Status Relay::complete_round() {
  if (Status status = parse_control(std::as_bytes(std::span(forwarded_.header)), round_); !status)
    return status;
  if (round_.has_same_body()) {
    if (!body_) return Error{"a Round refers to a body that never arrived"};
    round_.clear_same_body();
    if (!round_.mutable_body()->ParseFromString(body_->header)) return Error{"a body is damaged"};
    forwarded_.header = round_.SerializeAsString();
    forwarded_.prefix.payload_len = body_->prefix.payload_len;
    forwarded_.prefix.payload_crc = body_->prefix.payload_crc;
    forwarded_.payload = body_->payload;
  } else if (round_.has_body() && !round_.has_resync()) {
    body_ = forwarded_;
    body_->header = round_.body().SerializeAsString();
  }
  return Unit{};
}

void Relay::pass_round(Local& local) {
  Outgoing message = forwarded_.for_channel(0);
  message.request = round_.request_id();
  message.last = round_.request() == wire::REQUEST_GOODBYE;
  if (message.last) announced_shutdown_ = local.received_shutdown = true;
  if (sums_) sums_->asked(local.channel(), round_, sockets_->now());
  local.connection().send(std::move(message));
}

void Relay::on_closed(const std::string& why) {
  if (joined_) {
    if (!is_over_)
      log(LogLine::warning("the server " + options_.upstream + " is disconnected: " + why +
                           (refused_ || stopped_ ? "" : "; reconnecting")));
    last_contact_ = sockets_->now();
  }
  joined_ = false;
  body_.reset();
  if (sums_) sums_->forget();
  last_trouble_ = why;
  const auto wait = back_off_.next(std::exchange(retry_after_, milliseconds(0)));
  next_try_ = sockets_->now() + wait;
  for (const auto& [channel, local] : locals_) {
    if (local->received_shutdown) continue;  // the client disconnects by itself
    local->server_closed = true;
    local->connection().refuse("the relay has lost its server: " + why, refused_.has_value(), kServerAwayMs);
  }
}
void Relay::on_shut() { upstream_.reset(); }

// ---- time ----

void Relay::on_tick() {
  const SteadyTime now = sockets_->now();
  if (upstream_) upstream_->check_time(now);
  if (sums_) sums_->check_time(now);
  if (paused_ && (!joined_ || upstream_->bytes_waiting() < kMostBytesWaiting / 2)) pause_clients(false);
  std::uint64_t waiting = upstream_ ? upstream_->bytes_waiting() : 0, clients = 0;
  for (const auto& [channel, local] : locals_) {
    local->check_time(now);
    waiting += local->connection().bytes_waiting();
    clients += local->sent_hello() && local->connection().open() ? 1 : 0;
  }
  counts_.server_metrics.open.set(counts_.open);
  counts_.server_metrics.bytes_to_write.set(waiting);
  counts_.server_metrics.connected.set(clients);
  counts_.server_metrics.has_server.set(joined_ ? 1 : 0);
  if (!upstream_ && !is_over_ && now >= next_try_) connect();
}

milliseconds Relay::without_server() const {
  return joined_ ? milliseconds(0)
                 : std::chrono::duration_cast<milliseconds>(sockets_->now() - last_contact_);
}

bool Relay::over() const {
  if (stopped_ || refused_ || without_server() > options_.give_up_after) return true;
  if (is_over_ && locals_.empty()) return true;
  return announced_shutdown_ && !joined_ && without_server() > kShutdownTimeout;
}

void Relay::start() {
  sockets_->start(*this, times_.tick(), options_.handle_signals);
  log("listening on " + sockets_->address() + " for clients of " + options_.upstream +
      (sums_
           ? "; replies are added up if the algorithm allows it: the last bits of results differ from those "
             "without a relay"
           : "; each message is forwarded unchanged: results are those without a relay"));
  connect();
}

void Relay::run() {
  start();
  if (!options_.state.empty()) {
    std::filesystem::create_directories(options_.state);
    write_whole(options_.state / "address", sockets_->address() + "\n");
  }
  while (!over()) sockets_->wait(sockets_->now() + std::chrono::seconds(1), [this] { return over(); });
  if (stopped_ && !announced_shutdown_) {
    for (const auto& [channel, local] : locals_)
      local->connection().refuse("the relay was stopped", false, kServerAwayMs);
    if (upstream_) upstream_->close("the relay was stopped");
    sockets_->wait(sockets_->now() + times_.linger, [&] { return counts_.open == 0; });
    return;
  }
  if (refused_) {
    sockets_->wait(sockets_->now() + times_.linger, [&] { return locals_.empty(); });
    if (!retry_helps_) throw std::invalid_argument(*refused_);
    throw std::runtime_error(*refused_);
  }
  if (!announced_shutdown_)
    throw std::runtime_error("no server at " + options_.upstream + " (" + last_trouble_ +
                             "); giving up after " + std::to_string(without_server().count()) +
                             " ms; check its address, or give it more time with --give-up-after-ms");
  log("the run is over");
}

}  // namespace

std::unique_ptr<RelayRun> make_relay(const RelayOptions& options, std::unique_ptr<SocketLayer> sockets) {
  return std::make_unique<Relay>(options, std::move(sockets));
}

void run_relay(const RelayOptions& options) {
  if (const auto address = parse_address(options.upstream, AddressUse::kToConnect); !address)
    throw std::invalid_argument("--upstream " + address.error().message);
  if (options.identity.empty()) return Relay(options, listen_on_tcp(options.listen)).run();
  for (const char* file : {"client", "server.pem"})
    if (!std::filesystem::exists(options.identity / file))
      throw std::invalid_argument("--identity " + options.identity.string() +
                                  ": has no identity of a relay; the operator of its server makes one with "
                                  "gradwire-server enroll NAME --relay OUT");
  RelayOptions known = options;
  known.credentials = open_identity(options.identity, "");
  known.handshakes = handshake_rates(kClientsOfSite);
  Relay(known, secure_relay(listen_on_tcp(options.listen), options.identity, options.tls_min, options.log))
      .run();
}

}  // namespace gradwire
