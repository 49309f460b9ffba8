// Tests of the server's transport against hostile, broken, silent and slow peers.
#include <cmath>
#include <thread>

#include "tests/fl_server/tcp_fixture.h"

namespace gradwire {
namespace {

using TcpHostileTest = TcpTransportTest;

// ---- hostile and broken peers ----

TEST_F(TcpHostileTest, ClosesOnGarbageWithoutAnAnswer) {
  open();
  begin();
  FakeClient scanner = connect();
  scanner.send("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n");
  EXPECT_TRUE(scanner.is_hung_up_on());
  EXPECT_TRUE(logged("does not speak gradwire"));
  FakeClient secure = connect();
  secure.send("\x16\x03\x01\x02" + std::string(60, '\x01'));
  EXPECT_TRUE(secure.is_hung_up_on());
  EXPECT_TRUE(logged("it speaks TLS, and this end was started without --identity"));
  expect_served(0, 1);
}

TEST_F(TcpHostileTest, RefusesLengthsAboveTheLimitsBeforeTheirBytes) {
  open();
  begin();
  const auto prefix = [](std::uint32_t header, std::uint64_t payload) {
    std::string bytes = FakeClient::hello_frame("h").substr(0, kPrefixBytes);
    std::memcpy(&bytes[8], &header, sizeof header);
    std::memcpy(&bytes[16], &payload, sizeof payload);
    return bytes;
  };
  for (const auto& bytes : {prefix(0xFFFFFFFF, 0), prefix(kMaxHeaderBytes + 1, 0), prefix(10, 1),
                            prefix(10, 0xFFFFFFFFFFFFFFFF)}) {
    FakeClient client = connect();
    client.send(bytes);
    EXPECT_TRUE(client.read_refusal());
  }
  std::string large = reply(1, 1, 1).substr(0, kPrefixBytes);
  const std::uint64_t payload = max_payload_bytes(context, sizeof(double)) + 1;
  std::memcpy(&large[16], &payload, sizeof payload);
  clients[1].send(large);
  EXPECT_TRUE(clients[1].read_refusal());
  expect_served(0, 1);
}

TEST_F(TcpHostileTest, DisconnectsOnlyTheSenderForAnyFlippedByteOfAReply) {
  open();
  begin();
  const std::string good = reply(1, 1, 1);
  for (std::size_t at = 0; at < good.size(); at += 7) {
    transport->send(1, request(1));
    ASSERT_TRUE(receive(clients[1]));
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x20);
    clients[1].send(bad);
    clients[1].hang_up();
    const Event<double> event = next();
    ASSERT_EQ(event.kind, Kind::kLeft) << "byte " << at;
    clients[1] = come_back("b");
    ASSERT_EQ(next().kind, Kind::kJoined);
  }
  expect_served(0, 2);
}

TEST_F(TcpHostileTest, RefusesUnexpectedMessages) {
  open();
  begin();
  wire::Welcome welcome;
  const std::string shutdown = control_frame(FrameType::kWelcome, welcome);
  for (const std::string& first : {FakeClient::join_frame(), reply(0, 1, 1), heartbeat_frame(), shutdown}) {
    FakeClient client = connect();
    client.send(first);
    EXPECT_TRUE(client.read_refusal());
  }
  clients[1].send(FakeClient::hello_frame("b"));
  EXPECT_TRUE(clients[1].read_refusal());
  expect_served(0, 1);
}

TEST_F(TcpHostileTest, RefusesAReplyUnderAnotherClientsNumber) {
  open();
  begin();
  transport->send(0, request(1));
  clients[1].send(reply(0, 1, 1));
  EXPECT_TRUE(clients[1].read_refusal());
  EXPECT_EQ(next().kind, Kind::kLeft);
  expect_served(0, 2);
}

TEST_F(TcpHostileTest, RefusesAPeerOfAnotherVersionPermanently) {
  open();
  wire::Hello hello;
  hello.set_protocol(kWireVersion + 1);
  hello.set_client_name("x");
  FakeClient client = connect();
  client.send(control_frame(FrameType::kHello, hello));
  const auto refusal = client.read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_TRUE(refusal->fatal());
}

TEST_F(TcpHostileTest, RefusesInvalidHellos) {
  open();
  const std::string damaged = [] {
    const std::string header = "\x12\xff\xff\xff\x0f";  // announces a string of 32 MB that is missing
    const auto prefix = write_prefix(FrameType::kHello, std::as_bytes(std::span(header)), 0, 0);
    return std::string(reinterpret_cast<const char*>(prefix.data()), prefix.size()) + header;
  }();
  for (const std::string& hello :
       {FakeClient::hello_frame("two words"), FakeClient::hello_frame(std::string(65, 'n')),
        FakeClient::hello_frame("n", 2, 2), FakeClient::hello_frame("n", 0, 3), damaged}) {
    FakeClient client = connect();
    client.send(hello);
    EXPECT_TRUE(client.read_refusal());
  }
}

TEST_F(TcpHostileTest, RefusesJoinsWithImpossibleConstants) {
  open();
  using Set = void (wire::Join::*)(double);
  for (const Set set : {&wire::Join::set_smoothness, &wire::Join::set_convexity,
                        &wire::Join::set_sample_smoothness, &wire::Join::set_sample_smoothness_max}) {
    for (const double value : {-1.0, std::nan(""), HUGE_VAL}) {
      wire::Join join;
      join.set_columns(3);
      join.set_sample_count(10);
      join.set_test_count(0);
      (join.*set)(value);
      FakeClient client = connect();
      client.send(FakeClient::hello_frame("a"));
      const auto welcome = client.read_message();
      ASSERT_TRUE(welcome);
      ASSERT_EQ(welcome->prefix.type, FrameType::kWelcome);
      client.send(control_frame(FrameType::kJoin, join));
      const auto refusal = client.read_refusal();
      ASSERT_TRUE(refusal);
      EXPECT_NE(refusal->message().find("smoothness constant"), std::string::npos) << refusal->message();
    }
  }
}

// ---- floods ----

// Unauthenticated peers reconnect as fast as they are disconnected; a client that authenticates still gets
// in.
TEST_F(TcpHostileTest, AdmitsClientsDuringAFloodOfUnauthenticatedPeers) {
  open();
  begin();
  std::vector<FakeClient> flood;
  const auto renew = [&](std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) {
      flood.push_back(connect());
      if (flood.size() > 400) flood.erase(flood.begin());
    }
    turn();
  };
  for (int k = 0; k < 10; ++k) renew(50);
  for (int k = 0; k < 3; ++k) {
    clients[1].hang_up();
    ASSERT_EQ(next().kind, Kind::kLeft);
    FakeClient client = connect();
    renew(50);
    client.send(FakeClient::hello_frame("b"));
    renew(100);
    const auto welcome = client.read_message();
    ASSERT_TRUE(welcome);
    ASSERT_EQ(welcome->prefix.type, FrameType::kWelcome);
    renew(400);
    client.send(FakeClient::join_frame());
    expect_start(client);
    ASSERT_EQ(next().kind, Kind::kJoined);
    clients[1] = std::move(client);
  }
  EXPECT_TRUE(logged("too many unauthenticated connections, mostly from 127.0.0.1"));
  expect_served(0, 1);
  expect_served(1, 2);
}

// A peer repeatedly claims to be client b and never joins.
TEST_F(TcpHostileTest, KeepsAtMostOneUnjoinedConnectionPerClient) {
  open();
  begin();
  std::vector<FakeClient> flood;
  for (int k = 0; k < 300; ++k) {
    flood.push_back(connect());
    flood.back().send(FakeClient::hello_frame("b"));
  }
  EXPECT_TRUE(flood.front().read_message()) << "a Welcome";
  EXPECT_TRUE(flood.front().read_refusal());
  expect_served(1, 1);
  FakeClient second = come_back("b");
  ASSERT_EQ(next().kind, Kind::kJoined);
  clients[1] = std::move(second);
  expect_served(1, 2);
  expect_served(0, 3);
}

std::string hello_of(const std::string& name, std::uint64_t process, std::uint32_t connection) {
  wire::Hello hello;
  hello.set_protocol(kWireVersion);
  hello.set_client_name(name);
  hello.set_process(process);
  hello.set_connection(connection);
  return control_frame(FrameType::kHello, hello);
}

// Simulates a network that duplicates a client's bytes.
TEST_F(TcpHostileTest, KeepsAConnectionWhenADuplicateArrives) {
  open();
  begin();
  FakeClient first = connect();
  first.send(hello_of("a", 7, 1));
  ASSERT_TRUE(first.read_message());
  for (const bool joined : {false, true}) {
    FakeClient duplicate = connect();
    duplicate.send(hello_of("a", 7, 1) + FakeClient::join_frame());
    const auto refusal = duplicate.read_refusal();
    ASSERT_TRUE(refusal);
    EXPECT_FALSE(refusal->fatal());
    if (joined) break;
    first.send(FakeClient::join_frame());
    expect_start(first);
    ASSERT_EQ(next().kind, Kind::kJoined);
  }
  clients[0] = std::move(first);
  expect_served(0, 1);
  FakeClient again = connect();
  again.send(hello_of("a", 7, 2));
  ASSERT_TRUE(again.read_message());
  again.send(FakeClient::join_frame());
  expect_start(again);
}

// The round loop discards a reply that it cannot use. A later reply to the same request takes its place.
TEST_F(TcpHostileTest, FreesThePlaceOfADiscardedReply) {
  open();
  begin();
  transport->send(0, request(1));
  clients[0].send(reply(0, 1, 11) + reply(0, 1, 12));
  Event<double> event = next();
  ASSERT_EQ(event.up.parts.size(), 1u);
  transport->discard(event);
  event = next();
  EXPECT_TRUE(event.repeated) << "it came while the first was in use";
  clients[0].send(reply(0, 1, 13));
  event = next();
  EXPECT_FALSE(event.repeated);
  ASSERT_EQ(event.up.parts.size(), 1u);
  EXPECT_EQ(event.up.parts[0].values[0], 13);
}

// ---- time ----

// The round loop is busy for longer than a tick between two waits, as in rounds with a long apply().
TEST_F(TcpHostileTest, DisconnectsASilentClientBetweenLongRounds) {
  WireTimes times = patient();
  times.heartbeat = milliseconds(60);
  open(times);
  begin();
  for (int k = 0; k < 40 && !logged("no sign of life"); ++k) {
    std::this_thread::sleep_for(milliseconds(40));
    clients[1].send(heartbeat_frame());
    turn();
  }
  EXPECT_TRUE(logged("client 0 'a'"));
  EXPECT_TRUE(logged("no sign of life"));
  EXPECT_EQ(next(0.01).up.client, 0u);
  expect_served(1, 1);
}

// The server reads what arrived during a pause of the whole process before it judges the peers.
TEST_F(TcpHostileTest, DisconnectsNoClientForAPauseOfTheServer) {
  const milliseconds beat(250);  // so long that a busy machine does not look like a silent client
  WireTimes times = patient();
  times.heartbeat = beat;
  open(times);
  begin();
  for (int k = 0; k < 2; ++k) {
    for (FakeClient& client : clients) client.send(heartbeat_frame());
    std::this_thread::sleep_for(7 * beat);
    turn_for(milliseconds(1));
  }
  for (FakeClient& client : clients) client.send(heartbeat_frame());
  EXPECT_FALSE(logged("no sign of life"));
  expect_served(0, 1);
  expect_served(1, 2);
}

TEST_F(TcpHostileTest, RefusesAPeerThatNeverSendsHello) {
  WireTimes times = patient();
  times.handshake = milliseconds(60);
  open(times);
  FakeClient mute = connect();
  EXPECT_TRUE(mute.read_refusal());
  FakeClient cut = connect();
  cut.send(FakeClient::hello_frame("a").substr(0, 20));
  EXPECT_TRUE(cut.read_refusal());
}

TEST_F(TcpHostileTest, DisconnectsAfterAMessageThatStopsHalfway) {
  WireTimes times = patient();
  times.handshake = milliseconds(200);  // this also sets the tick
  times.frame_grace = milliseconds(100);
  open(times);
  begin();
  transport->send(0, request(1));
  clients[0].send(reply(0, 1, 1).substr(0, 100));
  EXPECT_EQ(next(3).kind, Kind::kLeft);
  EXPECT_TRUE(logged("took too long")) << lines.back();
  expect_served(1, 2);
}

TEST_F(TcpHostileTest, DisconnectsASilentClientButNotOneWithHeartbeats) {
  WireTimes times = patient();
  times.heartbeat = milliseconds(60);
  open(times);
  begin();
  for (int k = 0; k < 16; ++k) {
    clients[1].send(heartbeat_frame());
    turn_for(milliseconds(20));
  }
  const Event<double> event = next(0.01);
  EXPECT_EQ(event.kind, Kind::kLeft);
  EXPECT_EQ(event.up.client, 0u);
  EXPECT_TRUE(logged("no sign of life"));
  EXPECT_EQ(next(0.01).kind, Kind::kTimeout);
  const auto beat = clients[1].read();
  ASSERT_TRUE(beat);
  EXPECT_EQ(beat->prefix.type, FrameType::kHeartbeat) << "the server sends heartbeats as well";
}

TEST_F(TcpHostileTest, DisconnectsAClientThatReadsNothing) {
  WireTimes times = patient();
  times.write_stall = milliseconds(100);
  times.handshake = milliseconds(200);
  open(times, 2 << 20);
  begin();
  transport->send(0, request(1));
  const Event<double> event = next(3);
  EXPECT_EQ(event.kind, Kind::kLeft);
  EXPECT_TRUE(logged("it read nothing"));
}

TEST(Listener, ReportsInvalidAddresses) {
  const auto message = [](const std::string& address) -> std::string {
    try {
      listen_on_tcp(address);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message("7000"), "--listen 7000: write it as HOST:PORT, as in 127.0.0.1:7000");
  EXPECT_NE(message("127.0.0.1:99999"), "");
  const auto first = listen_on_tcp("127.0.0.1:0");
  EXPECT_NE(message(first->address()).find("in use"), std::string::npos) << message(first->address());
}

}  // namespace
}  // namespace gradwire
