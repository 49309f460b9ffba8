// A fixture: a server with two clients that the test drives by hand.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "fl_server/net/tcp_sockets.h"
#include "fl_server/sessions/tcp_transport.h"
#include "tests/support/fake_client.h"

namespace gradwire {

using std::chrono::milliseconds;
using Kind = Event<double>::Kind;

inline constexpr std::uint32_t kDim = 3;

inline WireTimes patient() {
  WireTimes times;
  times.linger = milliseconds(20);
  return times;
}

// A server with two clients, and what they need to talk to it.
class TcpTransportTest : public ::testing::Test {
 protected:
  void open(const WireTimes& times = patient(), std::uint32_t dim = kDim) {
    SessionManagerOptions options;
    options.clients = 2;
    options.experiment = experiment;
    options.times = times;
    options.most_for_relay_bytes = most_for_relay_bytes;
    options.bans = bans;
    options.most_from_address = most_from_address;
    options.receive_budget_bytes = receive_budget_bytes;
    options.normalize = normalize;
    options.normalization = normalization;
    options.log = [this](const LogLine& line) {
      lines.push_back((line.level == LogLevel::kWarning ? "warning: " : "") + line.text);
    };
    session_manager =
        std::make_unique<SessionManager>(options, listen_on_tcp("127.0.0.1:0", {.zero_copy = zero_copy}));
    context = {1, dim, 2, parse_compressor("identity", dim), {ZstdMode::Kind::kOff, 0}};
  }
  void turn() {
    session_manager->wait(std::chrono::steady_clock::now() + milliseconds(1), [] { return false; });
  }
  void turn_for(milliseconds time) {
    session_manager->wait(std::chrono::steady_clock::now() + time, [] { return false; });
  }
  FakeClient connect(int receive_bytes = 0) {
    return FakeClient(
        session_manager->address(), [this] { turn(); }, receive_bytes);
  }

  // Joins both clients and begins the run.
  void begin() {
    clients.clear();
    for (const std::string name : {"a", "b"}) {
      clients.push_back(connect());
      ASSERT_EQ(clients.back().shake_hands(name), clients.size() - 1);
    }
    ASSERT_TRUE(session_manager->gather(milliseconds(2000)));
    start();
    for (FakeClient& client : clients) expect_start(client);
  }
  void start() {
    wire::Start message;
    message.set_dim(context.dim);
    transport = std::make_unique<TcpTransport<double>>(*session_manager, context,
                                                       control_frame(FrameType::kStart, message), takes_sums);
  }
  static void expect_start(FakeClient& client) {
    const auto frame = client.read_message();
    ASSERT_TRUE(frame);
    ASSERT_EQ(frame->prefix.type, FrameType::kStart);
  }
  // Reconnects a client.
  FakeClient come_back(const std::string& name) {
    FakeClient client = connect();
    EXPECT_TRUE(client.shake_hands(name));
    expect_start(client);
    return client;
  }

  Request<double> request(std::uint64_t request_id) {
    down.round = static_cast<std::uint32_t>(request_id);
    x.resize(context.dim);
    std::iota(x.begin(), x.end(), static_cast<double>(request_id));
    down.parts = {Payload<double>::dense(x)};
    Request<double> request;
    request.request_id = request_id;
    request.body = &down;
    return request;
  }
  std::string reply(std::uint32_t client, std::uint64_t request_id, double value) {
    const Vec<double> values(context.dim, value);
    Uplink<double> uplink;
    uplink.request_id = request_id;
    uplink.client = client;
    uplink.parts = {Payload<double>::dense(values)};
    Codec<double> codec(context);
    return bytes_of(codec.encode(uplink));
  }
  // A request as a client received it.
  struct Received {
    std::uint64_t request_id = 0;
    Vec<double> x;
    std::uint64_t have_bytes = 0;
  };
  std::optional<Received> receive(FakeClient& client) {
    const auto frame = client.read_message();
    if (!frame || frame->prefix.type != FrameType::kRound) return std::nullopt;
    RequestSlot<double> slot(context);
    const auto targets = slot.prepare(frame->prefix, std::as_bytes(std::span(frame->header)));
    if (!targets) return std::nullopt;
    std::size_t at = 0;
    for (const auto target : *targets) {
      std::memcpy(target.data(), frame->payload.data() + at, target.size());
      at += target.size();
    }
    const auto request = slot.finish();
    if (!request) {
      ADD_FAILURE() << request.error().message;
      return std::nullopt;
    }
    const View<double> values = request->body->parts[0].values;
    return Received{request->request_id, {values.begin(), values.end()}, slot.have_bytes()};
  }
  Event<double> next(double seconds = 5) { return transport->next(transport->now() + seconds); }
  // Expects that this client receives a request and that its reply arrives.
  void expect_served(std::uint32_t client, std::uint64_t request_id) {
    transport->send(client, request(request_id));
    ASSERT_TRUE(receive(clients[client]));
    clients[client].send(reply(client, request_id, 7));
    Event<double> event = next();
    while (event.kind == Kind::kLeft) event = next();
    ASSERT_EQ(event.kind, Kind::kReply);
    EXPECT_EQ(event.up.client, client);
    EXPECT_EQ(event.up.request_id, request_id);
  }
  bool logged(const std::string& text) const {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }

  bool takes_sums = false, zero_copy = false;
  BanLimits bans{.longest = {}};  // no bans
  std::uint32_t most_from_address = 0;
  std::uint64_t receive_budget_bytes = SessionManagerOptions().receive_budget_bytes;
  Normalize normalize = Normalize::kNone;
  std::shared_ptr<const Normalization> normalization;
  std::string experiment = "experiment";
  std::uint64_t most_for_relay_bytes = SessionManagerOptions().most_for_relay_bytes;
  std::vector<std::string> lines;
  std::unique_ptr<SessionManager> session_manager;
  CodecContext context;
  Vec<double> x;
  Downlink<double> down;
  // destroyed before the session manager, and before x and down, which it sends
  std::unique_ptr<TcpTransport<double>> transport;
  std::vector<FakeClient> clients;
};

}  // namespace gradwire
