#include "fl_server/sessions/session.h"

#include <cstring>
#include <utility>

#include "fl_server/sessions/join.h"
#include "fl_server/sessions/session_manager.h"
#include "proto/wire/control_frame.h"
#include "proto/wire/feature_messages.h"
#include "proto/wire/wire.pb.h"

namespace gradwire {
namespace {

constexpr std::size_t kMaxClaimedName = 64;  // bytes
constexpr const char* kOver = "the run is over";

}  // namespace

// The Hello or Relay of a peer, until the peer is accepted.
struct Introduction {
  wire::Hello hello;
  wire::Relay relay;
  Login login;
};

Session::Session(std::uint64_t id, SocketLayer& sockets, const WireTimes& times, SessionOwner& owner)
    : id_(id), sockets_(sockets), times_(times), owner_(owner) {
  idle_timer_.restart(sockets.now());
}

Session::~Session() = default;

Connection& Session::speak(std::unique_ptr<Connection> connection) {
  connection_ = connection.get();
  link_ = std::move(connection);
  return *connection_;
}

MuxChannel& Session::speak(std::unique_ptr<MuxChannel> channel, Session& relay) {
  relay_ = &relay;
  channel_ = channel.get();
  link_ = std::move(channel);
  return *channel_;
}

void Session::begin(const std::string& start, std::uint64_t max_payload) {
  state_ = SessionState::kRounds;
  link_->set_max_payload(max_payload);
  link_->send(Outgoing::control(start));
}

void Session::scale(const Normalization& map) {
  if (!awaits_sums_ || !client_ || !link_->open()) return;
  if (state_ != SessionState::kSummed)
    return refuse(Ending::kReplaced, "another process has sent the sums of this client; reconnect", false);
  awaits_sums_ = false;
  state_ = SessionState::kData;
  idle_timer_.restart(sockets_.now());
  link_->send(Outgoing::control(scaling_frames(map, *client_)));
}

void Session::refuse(Ending ending, const std::string& message, bool fatal, std::uint32_t retry_after_ms) {
  if (link_->open()) owner_.server_metrics().end(ending);
  unwanted_ = unwanted_ || ending == Ending::kUnwanted;
  link_->refuse(message, fatal, retry_after_ms);
}

void Session::check_time(SteadyTime now) {
  if (!proven_name_.empty() && !owner_.authenticator()->still_admits(proven_name_))
    return refuse(Ending::kRevoked, "'" + proven_name_ + "' was revoked", true);
  if (!link_->open()) return link_->check_time(now);
  if ((state_ == SessionState::kHello || state_ == SessionState::kProof) &&
      idle_timer_.is_over(now, times_.handshake))
    return refuse(Ending::kTooLate,
                  std::string(state_ == SessionState::kHello ? "no Hello" : "no Proof") + " within " +
                      std::to_string(times_.handshake.count()) + " ms; is the peer a gradwire-client?",
                  false, on_misbehaviour());
  if (state_ == SessionState::kData && idle_timer_.is_over(now, times_.data))
    return refuse(Ending::kTooLate,
                  "no Join within " + std::to_string(times_.data.count()) +
                      " ms: the client takes too long to read its data",
                  false);
  link_->check_time(now);
}

Result<std::span<const std::span<std::byte>>> Session::on_header(const Prefix& prefix,
                                                                 std::span<const std::byte> header) {
  reply_bytes_ = 0;
  in_channel_ = prefix.channel != 0 && channel_ == nullptr;
  if (in_channel_) return multiplexer_->on_header(prefix, header);
  in_chunk_ = prefix.type == FrameType::kChunk && state_ == SessionState::kRounds && takes_chunks_;
  SessionEvents* const events = owner_.round_events();
  if (prefix.type == FrameType::kReply && state_ == SessionState::kRounds) {
    reply_bytes_ = kPrefixBytes + prefix.header_len + prefix.payload_len;
    if (events == nullptr) return Error{kOver};
    return counted(events->on_reply_header(*client_, prefix, header));
  }
  if (in_chunk_) {
    if (events == nullptr) return Error{kOver};
    return events->on_chunk_header(*client_, prefix, header);
  }
  if (prefix.type == FrameType::kReply && adds_) {
    reply_bytes_ = kPrefixBytes + prefix.header_len + prefix.payload_len;
    if (events == nullptr) return std::span<const std::span<std::byte>>();  // its clients are told of the end
    return events->on_sum_header(id_, prefix, header,
                                 [this](ClientId client) { return owner_.is_served_by(*this, client); });
  }
  if (prefix.payload_len > 0) return Error{std::string(name_of(prefix.type)) + " must not have a payload"};
  if (Status status = control(prefix.type, header); !status) return status.error();
  return std::span<const std::span<std::byte>>();
}

void Session::close_replaced(const std::string& why, bool fatal) {
  tell_broken_reply();
  client_.reset();
  refuse(Ending::kReplaced, why, fatal);
}

void Session::on_closed(const std::string& why) {
  tell_broken_reply();
  if (multiplexer_) multiplexer_->lost("its relay is disconnected: " + why);
  owner_.on_closed(*this, why);
}

void Session::tell_broken_reply() {
  SessionEvents* const events = owner_.round_events();
  if (events != nullptr && client_ && reply_bytes_ > 0 && link_->payload_received() > 0)
    events->on_broken_reply(*client_, link_->payload_received());
}

void Session::on_shut() {
  if (relay() != nullptr) relay_->multiplexer_->forget(channel_->channel());
  owner_.on_shut(*this);
}

Status Session::on_frame() {
  if (in_channel_) multiplexer_->on_frame();
  if (!in_chunk_ && reply_bytes_ == 0) return Unit{};
  SessionEvents* const events = owner_.round_events();
  if (events == nullptr) return adds_ ? Status(Unit{}) : Status(Error{kOver});
  if (in_chunk_) return events->on_chunk(*client_);
  if (adds_) return events->on_sum(id_, reply_bytes_);
  return counted(events->on_reply(*client_, reply_bytes_));
}

template <class T>
Result<T> Session::counted(Result<T> result) {
  if (!result) owner_.server_metrics().reject(Rejection::kMalformed);
  return result;
}

Status Session::control(FrameType type, std::span<const std::byte> header) {
  if (type == FrameType::kError) return error(header);
  if (type == FrameType::kRelay && state_ == SessionState::kHello && connection_ != nullptr)
    return relay(header);
  if (type == FrameType::kHello && state_ == SessionState::kHello) return hello(header);
  if (type == FrameType::kJoin && state_ == SessionState::kData) return join(header);
  if (type == FrameType::kProof && state_ == SessionState::kProof) return proof(header);
  if (type == FrameType::kHeartbeat && state_ != SessionState::kHello) return Unit{};
  if (type == FrameType::kReceived && link_->ending()) {
    owner_.on_shutdown_confirmed(*this);
    return Unit{};
  }
  return Error{std::string(name_of(type)) + " is not expected now"};
}

bool Session::refuse_version(const std::string& peer, std::uint32_t version) {
  if (version == kWireVersion) return false;
  refuse(Ending::kWrongVersion,
         "the " + peer + " speaks version " + std::to_string(version) +
             " of the protocol, the server speaks " + std::to_string(kWireVersion) +
             ": install the same release on both",
         true);
  return true;
}

Status Session::hello(std::span<const std::byte> header) {
  introduction_ = std::make_unique<Introduction>();
  wire::Hello& hello = introduction_->hello;
  if (Status status = parse_control(header, hello); !status) return status;
  claimed_name_ = one_line(hello.client_name().substr(0, kMaxClaimedName));
  if (!hello.has_protocol() || !hello.has_client_name()) return Error{"Hello: protocol or name is missing"};
  if (refuse_version("client", hello.protocol())) return Unit{};
  return owner_.authenticator() == nullptr ? greet() : challenge(hello.client_name(), hello.public_key());
}

// Handles the Hello of a peer that is accepted.
Status Session::greet() {
  const wire::Hello hello = std::exchange(introduction_, nullptr)->hello;
  if (ban(hello.client_name())) return Unit{};
  const Abilities abilities = read_abilities(hello);
  if (const Status able = owner_.check(abilities); !able) {
    refuse(Ending::kUnwanted, able.error().message, true);
    return Unit{};
  }
  process_ = hello.process();
  ordinal_ = hello.connection();
  std::optional<std::uint32_t> index, count;
  if (hello.has_part_index()) index = hello.part_index();
  if (hello.has_part_count()) count = hello.part_count();
  const Result<ClientId> client = owner_.on_hello(*this, hello.client_name(), index, count);
  if (!client) {
    refuse(Ending::kUnwanted, client.error().message, true);
    return Unit{};
  }
  client_ = *client;
  info_.build = one_line(hello.build());
  // Release 0.2 calls the portable kernels by another name.
  info_.kernels = hello.kernels() == "baseline" ? "portable" : one_line(hello.kernels());
  info_.abilities = abilities;
  info_.pid = hello.pid();
  state_ = SessionState::kData;
  idle_timer_.restart(sockets_.now());
  link_->expect_heartbeats();
  awaits_sums_ = owner_.asked_sums() != Normalize::kNone;
  takes_chunks_ = channel_ == nullptr || (relay() != nullptr && relay()->passes_chunks_);
  link_->send(Outgoing::control(owner_.welcome(*client, takes_chunks_)));
  return Unit{};
}

bool Session::ban(const std::string& name) {
  const std::uint32_t left_ms = owner_.banned(*this, name);
  if (left_ms == 0) return false;
  refuse(Ending::kBanned,
         "'" + name + "' is banned for " + std::to_string(left_ms) + " ms more: it misbehaved repeatedly",
         false, left_ms);
  return true;
}

Status Session::challenge(const std::string& name, const std::string& public_key) {
  Login& login = introduction_->login;
  if (public_key.size() != login.key.bytes.size()) {
    refuse(Ending::kNotAdmitted,
           "this server requires authentication: start the client with the --token that the operator made "
           "for it",
           true);
    return Unit{};
  }
  login.role = introduction_->hello.has_protocol() ? Login::PeerRole::kClient : Login::PeerRole::kRelay;
  login.name = name;
  std::memcpy(login.key.bytes.data(), public_key.data(), public_key.size());
  login.nonce = random_secret();
  state_ = SessionState::kProof;
  wire::Challenge message;
  message.set_nonce(login.nonce.data(), login.nonce.size());
  message.set_realm(owner_.authenticator()->realm());
  link_->send(Outgoing::control(control_frame(FrameType::kChallenge, message)));
  return Unit{};
}

Status Session::proof(std::span<const std::byte> header) {
  wire::Proof message;
  if (Status status = parse_control(header, message); !status) return status;
  Login& login = introduction_->login;
  if (message.signature().size() != login.proof.signature.size())
    return Error{"Proof: the signature is missing or damaged"};
  std::memcpy(login.proof.signature.data(), message.signature().data(), login.proof.signature.size());
  if (message.has_token_mac()) {
    if (message.token_mac().size() != login.nonce.size()) return Error{"Proof: token_mac is damaged"};
    std::memcpy(login.proof.token_mac.emplace().data(), message.token_mac().data(), login.nonce.size());
  }
  if (const Status admitted = owner_.authenticator()->admit(login); !admitted) {
    const bool fatal = admitted.error().kind != ErrorKind::kSystem;
    if (fatal) on_misbehaviour();  // the peer learns no ban time, as a retry would fail again
    refuse(Ending::kNotAdmitted, one_line(admitted.error().message), fatal);
    return Unit{};
  }
  proven_name_ = login.name;
  if (introduction_->hello.has_protocol()) return greet();
  if (!ban(login.name)) carry();
  return Unit{};
}

Status Session::join(std::span<const std::byte> header) {
  wire::Join join;
  if (Status status = parse_control(header, join); !status) return status;
  if (awaits_sums_) return take_sums_of(join);
  if (join.has_sums()) return Error{"Join: sums that the server did not ask for"};
  const Result<ClientInfo> info = read_join(join, info_);
  if (!info) return info.error();
  state_ = SessionState::kJoined;
  const Status joined = owner_.on_join(*this, *info);
  if (!joined) refuse(Ending::kUnwanted, joined.error().message, true);
  return Unit{};
}

Status Session::take_sums_of(const wire::Join& join) {
  if (!join.has_sums()) {
    refuse(Ending::kUnwanted,
           "its Join lacks the sums of its features, which problem.normalize needs: install the same release "
           "on both",
           true);
    return Unit{};
  }
  if (summed_ == nullptr) {
    Result<ClientInfo> info = read_join(join, info_);
    if (!info) return info.error();
    if (const Status good = owner_.check(*this, *info); !good) {
      refuse(Ending::kUnwanted, good.error().message, true);
      return Unit{};
    }
    summed_ = std::make_unique<Summed>();
    summed_->info = std::move(*info);
    summed_->sums.columns = summed_->info.columns;
    summed_->sums.samples = summed_->info.sample_count;
  }
  const Result<bool> complete = take_sums(join.sums(), summed_->sums);
  if (!complete) return complete.error();
  if (!*complete) return Unit{};
  if (const Status good = check_sums(summed_->sums, owner_.asked_sums()); !good)
    return Error{"Join: " + good.error().message};
  state_ = SessionState::kSummed;
  const std::unique_ptr<Summed> summed = std::move(summed_);
  return owner_.on_sums(*this, summed->info, std::move(summed->sums));
}

Status Session::relay(std::span<const std::byte> header) {
  wire::Relay message;
  if (Status status = parse_control(header, message); !status) return status;
  claimed_name_ = one_line(message.name().substr(0, kMaxClaimedName));
  if (refuse_version("relay", message.protocol())) return Unit{};
  introduction_ = std::make_unique<Introduction>();
  introduction_->relay = message;
  if (owner_.authenticator() == nullptr) {
    carry();
    return Unit{};
  }
  return challenge(message.name(), message.public_key());
}

// Handles the Relay of a relay that is accepted.
void Session::carry() {
  state_ = SessionState::kRelay;
  const wire::Relay message = std::exchange(introduction_, nullptr)->relay;
  adds_ = message.adds();
  passes_chunks_ = message.pieces() && !adds_;
  multiplexer_ = std::make_unique<Multiplexer>(
      [this](std::uint32_t channel) { return owner_.on_channel(*this, *connection_, channel); });
  connection_->carry_channels();
  link_->expect_heartbeats();
  tell_relay();
}

void Session::tell_relay() {
  link_->set_max_payload(owner_.max_payload());
  connection_->limit_waiting(owner_.most_for_relay());
  link_->send(Outgoing::control(owner_.relay_welcome(*this)));
}

// Handles an Error: the client gives the reason why it leaves.
Status Session::error(std::span<const std::byte> header) {
  wire::ErrorMessage error;
  if (Status status = parse_control(header, error); !status) return status;
  owner_.server_metrics().end(Ending::kByPeer);
  link_->close("its message: " + one_line(error.message()));
  return Unit{};
}

}  // namespace gradwire
