#include "fl_server/session.h"

#include <utility>

#include "fl_server/join.h"
#include "proto/control_frame.h"
#include "proto/wire.pb.h"

namespace gradwire {
namespace {

const char* name_of(FrameType type) {
  switch (type) {
    case FrameType::kHello: return "Hello";
    case FrameType::kWelcome: return "Welcome";
    case FrameType::kJoin: return "Join";
    case FrameType::kStart: return "Start";
    case FrameType::kRound: return "Round";
    case FrameType::kReply: return "Reply";
    case FrameType::kError: return "Error";
    case FrameType::kHeartbeat: return "Heartbeat";
    case FrameType::kReceived: return "Received";
  }
  return "unknown";
}

}  // namespace

Session::Session(std::uint64_t id, SocketLayer& sockets, std::unique_ptr<Socket> socket,
                 const WireTimes& times, SessionOwner& owner, ConnectionCounts& counts)
    : id_(id),
      sockets_(sockets),
      times_(times),
      owner_(owner),
      connection_(sockets, std::move(socket), times, *this, counts),
      state_since_(sockets.now()) {}

void Session::begin(const std::string& start, std::uint64_t max_payload) {
  state_ = State::kRounds;
  connection_.set_max_payload(max_payload);
  connection_.send(Outgoing::control(start));
}

void Session::check_time(SteadyTime now) {
  const auto waited = now - state_since_;
  if (state_ == State::kHello && waited > times_.handshake)
    return connection_.refuse("no Hello within " + std::to_string(times_.handshake.count()) + " ms", false,
                              0);
  if (state_ == State::kData && waited > times_.data)
    return connection_.refuse("no Join within " + std::to_string(times_.data.count()) + " ms", false, 0);
  connection_.check_time(now);
}

Result<std::span<const std::span<std::byte>>> Session::on_header(const Prefix& prefix,
                                                                 std::span<const std::byte> header) {
  reply_bytes_ = 0;
  if (prefix.type == FrameType::kReply && state_ == State::kRounds) {
    reply_bytes_ = kPrefixBytes + prefix.header_len + prefix.payload_len;
    return owner_.on_reply_header(*this, prefix, header);
  }
  if (prefix.payload_len > 0) return Error{std::string(name_of(prefix.type)) + " has no payload"};
  if (Status status = control(prefix.type, header); !status) return status.error();
  return std::span<const std::span<std::byte>>();
}

void Session::give_way(const std::string& why) {
  tell_broken_reply();
  client_.reset();
  connection_.refuse(why, true, 0);
}

void Session::on_closed(const std::string& why) {
  tell_broken_reply();
  owner_.on_closed(*this, why);
}

void Session::tell_broken_reply() {
  if (client_ && reply_bytes_ > 0 && connection_.payload_received() > 0)
    owner_.on_broken_reply(*this, connection_.payload_received());
}

Status Session::on_frame() {
  return reply_bytes_ > 0 ? owner_.on_reply(*this, reply_bytes_) : Status(Unit{});
}

Status Session::control(FrameType type, std::span<const std::byte> header) {
  if (type == FrameType::kError) return error(header);
  if (type == FrameType::kHello && state_ == State::kHello) return hello(header);
  if (type == FrameType::kJoin && state_ == State::kData) return join(header);
  if (type == FrameType::kHeartbeat && state_ != State::kHello) return Unit{};
  if (type == FrameType::kReceived && connection_.ending()) {
    owner_.on_heard(*this);
    return Unit{};
  }
  return Error{std::string(name_of(type)) + " is out of place here"};
}

Status Session::hello(std::span<const std::byte> header) {
  wire::Hello hello;
  if (Status status = parse_control(header, hello); !status) return status;
  if (!hello.has_protocol() || !hello.has_client_name()) return Error{"Hello: protocol or name is missing"};
  if (hello.protocol() != kWireVersion) {
    connection_.refuse("the client speaks version " + std::to_string(hello.protocol()) +
                           " of the protocol, the server " + std::to_string(kWireVersion) +
                           ": install the same release on both",
                       true, 0);
    return Unit{};
  }
  std::optional<std::uint32_t> index, count;
  if (hello.has_part_index()) index = hello.part_index();
  if (hello.has_part_count()) count = hello.part_count();
  const Result<ClientId> client = owner_.on_hello(*this, hello.client_name(), index, count);
  if (!client) {
    connection_.refuse(client.error().message, true, 0);
    return Unit{};
  }
  client_ = *client;
  info_.build = one_line(hello.build());
  info_.kernels = one_line(hello.kernels());
  info_.pid = hello.pid();
  state_ = State::kData;
  state_since_ = sockets_.now();
  connection_.expect_heartbeats();
  connection_.send(Outgoing::control(owner_.welcome(*client)));
  return Unit{};
}

Status Session::join(std::span<const std::byte> header) {
  wire::Join join;
  if (Status status = parse_control(header, join); !status) return status;
  const Result<ClientInfo> info = read_join(join, info_);
  if (!info) return info.error();
  state_ = State::kJoined;
  const Status joined = owner_.on_join(*this, *info);
  if (!joined) connection_.refuse(joined.error().message, true, 0);
  return Unit{};
}

// The client says why it leaves.
Status Session::error(std::span<const std::byte> header) {
  wire::ErrorMessage error;
  if (Status status = parse_control(header, error); !status) return status;
  connection_.close("it says: " + one_line(error.message()));
  return Unit{};
}

}  // namespace gradwire
