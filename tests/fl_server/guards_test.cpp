// Tests of bans, limits of connections per address, and the receive budget, over real sockets.
#include <cmath>

#include "tests/fl_server/tcp_fixture.h"

namespace gradwire {
namespace {

constexpr BanLimits kShort{.first = milliseconds(300), .longest = std::chrono::hours(1)};

class GuardsTest : public TcpTransportTest {
 protected:
  // Sends invalid replies as client 1 until it is banned. Returns the length of the ban.
  std::uint32_t misbehave_as_b(double value, int times) {
    std::uint32_t retry_ms = 0;
    for (int k = 0; k < times; ++k) {
      transport->send(1, request(++request_id));
      if (!receive(clients[1])) ADD_FAILURE() << "client b was not asked";
      clients[1].send(reply(1, request_id, value));
      const auto refusal = clients[1].read_refusal();
      EXPECT_TRUE(refusal);
      retry_ms = refusal ? refusal->retry_after_ms() : 0;
      EXPECT_EQ(next().kind, Kind::kLeft);
      if (retry_ms > 0) return retry_ms;
      clients[1] = come_back("b");
      EXPECT_EQ(next().kind, Kind::kJoined);
    }
    return retry_ms;
  }
  // Returns the answer to a client that connects as b.
  std::optional<wire::ErrorMessage> refusal_of_b() {
    FakeClient client = connect();
    client.send(FakeClient::hello_frame("b"));
    return client.read_refusal();
  }
  std::uint64_t request_id = 0;
};

TEST_F(GuardsTest, BansAClientThatRepeatedlySendsNanAndTellsItSo) {
  bans = kShort;
  open();
  begin();
  EXPECT_EQ(misbehave_as_b(NAN, 5), 300u) << "for its third violation";
  EXPECT_TRUE(logged("value 0 of part 0 is not finite"));
  EXPECT_TRUE(logged("warning: 'b' at 127.0.0.1 misbehaved 3 times and is banned for 300 ms"));
  const auto refusal = refusal_of_b();
  ASSERT_TRUE(refusal);
  EXPECT_FALSE(refusal->fatal());
  EXPECT_GT(refusal->retry_after_ms(), 0u);
  EXPECT_LE(refusal->retry_after_ms(), 300u);
  EXPECT_NE(refusal->message().find("misbehaved repeatedly"), std::string::npos);
  expect_served(0, ++request_id);
  turn_for(milliseconds(350));
  clients[1] = come_back("b");
  ASSERT_EQ(next().kind, Kind::kJoined);
  expect_served(1, ++request_id);
  EXPECT_EQ(misbehave_as_b(INFINITY, 1), 600u) << "twice as long as before";
}

TEST_F(GuardsTest, DisconnectsAfterReplaysThatNoClientSends) {
  bans = kShort;
  open();
  begin();
  for (int k = 0; k < 3; ++k) {
    transport->send(1, request(++request_id));
    ASSERT_TRUE(receive(clients[1]));
    clients[1].send(reply(1, request_id, 5));
    const Event<double> event = next();
    ASSERT_EQ(event.kind, Kind::kReply);
    transport->discard(event);
    transport->report_misbehaviour(event);
  }
  const auto refusal = clients[1].read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->retry_after_ms(), 300u);
  expect_served(0, ++request_id);
}

TEST_F(GuardsTest, NeverBansAClientForViolationsUnderItsClaimedName) {
  bans = kShort;
  open();
  begin();
  for (int k = 0; k < 9; ++k) {
    FakeClient unauthenticated = connect();
    unauthenticated.send(FakeClient::hello_frame("b"));
    ASSERT_TRUE(unauthenticated.read_message());
    unauthenticated.send("no frame at all, whatever it is called");
    EXPECT_TRUE(unauthenticated.is_hung_up_on());
    FakeClient scanner = connect();
    scanner.send("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
    EXPECT_TRUE(scanner.is_hung_up_on());
  }
  expect_served(1, ++request_id);
  clients[0].hang_up();
  ASSERT_EQ(next().kind, Kind::kLeft);
  clients[0] = come_back("a");
  ASSERT_EQ(next().kind, Kind::kJoined);
  expect_served(0, ++request_id);
}

TEST_F(GuardsTest, ClosesConnectionsOfABannedAddressAtOnce) {
  bans = kShort;
  open();
  for (int k = 0; k < 3; ++k) {
    FakeClient scanner = connect();
    scanner.send("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
    EXPECT_TRUE(scanner.is_hung_up_on());
  }
  FakeClient early = connect();
  const auto refusal = early.read_refusal();
  ASSERT_TRUE(refusal) << "before it says anything";
  EXPECT_GT(refusal->retry_after_ms(), 0u);
  EXPECT_LE(refusal->retry_after_ms(), 300u);
  turn_for(milliseconds(350));
  begin();
  expect_served(0, ++request_id);
}

TEST_F(GuardsTest, CountsASlowHandshakeAsOneViolationPerConnection) {
  bans = kShort;
  WireTimes times = patient();
  times.handshake = milliseconds(100);
  // A refused connection stays open for several checks, which must not count it again.
  times.linger = milliseconds(500);
  open(times);
  FakeClient slow[2] = {connect(), connect()};
  for (FakeClient& client : slow) client.send("G");
  turn_for(milliseconds(450));
  EXPECT_TRUE(logged("no Hello within 100 ms"));
  EXPECT_FALSE(logged("is banned"));
  FakeClient third = connect();
  turn_for(milliseconds(250));
  EXPECT_TRUE(logged("warning: 127.0.0.1 misbehaved 3 times and is banned for 300 ms"));
}

TEST_F(GuardsTest, LimitsConnectionsPerAddressAndClosesUnauthenticatedOnesFirst) {
  most_from_address = 4;
  open();
  begin();
  std::vector<FakeClient> flood;
  for (int k = 0; k < 50; ++k) {
    flood.push_back(connect());
    turn();
  }
  EXPECT_TRUE(logged("more than 4 connections come from 127.0.0.1"));
  std::size_t left = 0;
  for (FakeClient& unauthenticated : flood) {
    unauthenticated.send(FakeClient::hello_frame("x"));
    left += unauthenticated.read_refusal().has_value();
  }
  EXPECT_LE(left, 2u) << "the two clients have the other places";
  clients[1].hang_up();
  ASSERT_EQ(next().kind, Kind::kLeft);
  clients[1] = come_back("b");
  ASSERT_EQ(next().kind, Kind::kJoined);
  expect_served(0, ++request_id);
  expect_served(1, ++request_id);
}

constexpr std::uint32_t kLargeDim = 100'000;  // a reply of 800 KB

TEST_F(GuardsTest, DoesNotReadAReplyUntilThereIsRoom) {
  receive_budget_bytes = 1 << 20;
  open(patient(), kLargeDim);
  begin();
  for (const std::uint32_t client : {0u, 1u}) {
    transport->send(client, request(1));
    ASSERT_TRUE(receive(clients[client]));
  }
  const std::string first = reply(0, 1, 3), second = reply(1, 1, 4);
  clients[0].send(first.substr(0, 400'000));
  turn_for(milliseconds(50));
  clients[1].send(second.substr(0, 2'000));  // more would wait in the socket and block this thread
  EXPECT_EQ(next(0.2).kind, Kind::kTimeout);
  clients[0].send(first.substr(400'000));
  Event<double> event = next();
  ASSERT_EQ(event.kind, Kind::kReply);
  EXPECT_EQ(event.up.client, 0u);
  clients[1].send(second.substr(2'000));
  event = next();
  ASSERT_EQ(event.kind, Kind::kReply);
  EXPECT_EQ(event.up.client, 1u);
  EXPECT_EQ(event.up.parts[0].values[kLargeDim - 1], 4);
}

TEST_F(GuardsTest, DisconnectsASlowSenderThatHoldsTheBudgetOthersNeed) {
  receive_budget_bytes = 1 << 20;
  WireTimes times = patient();
  times.frame_grace = milliseconds(200);
  times.handshake = milliseconds(2000);
  open(times, kLargeDim);
  begin();
  for (const std::uint32_t client : {0u, 1u}) {
    transport->send(client, request(1));
    ASSERT_TRUE(receive(clients[client]));
  }
  clients[0].send(reply(0, 1, 3).substr(0, 400'000));
  turn_for(milliseconds(20));
  const std::string second = reply(1, 1, 4);
  clients[1].send(second.substr(0, 2'000));
  Event<double> event = next();
  ASSERT_EQ(event.kind, Kind::kLeft) << "client 0 is disconnected";
  EXPECT_EQ(event.up.client, 0u);
  clients[1].send(second.substr(2'000));
  event = next();
  ASSERT_EQ(event.kind, Kind::kReply);
  EXPECT_EQ(event.up.client, 1u);
}

TEST_F(GuardsTest, DisconnectsASenderBelowTheMinimumRate) {
  WireTimes times = patient();
  times.frame_grace = milliseconds(200);
  times.min_bytes_per_second = 100'000;  // 20 KB within frame_grace
  times.handshake = milliseconds(2000);
  for (const std::size_t step : {4'000u, 100u}) {
    lines.clear();
    open(times, kLargeDim);
    begin();
    transport->send(1, request(1));
    ASSERT_TRUE(receive(clients[1]));
    const std::string bytes = reply(1, 1, 4);
    for (std::size_t at = 0; at < 60 * step; at += step) {
      clients[1].send(bytes.substr(at, step));
      turn_for(milliseconds(10));
    }
    EXPECT_EQ(logged("a message took too long to arrive: "), step < 4'000);
    EXPECT_EQ(logged(" in 200 ms, of at least 100000 a second (at a server: server.min_bytes_per_second)"),
              step < 4'000);
    transport.reset();
  }
}

}  // namespace
}  // namespace gradwire
