// Tests of the server's transport: rounds, and clients that leave and return.
#include <future>
#include <thread>

#include "tests/fl_server/tcp_fixture.h"

namespace gradwire {
namespace {

// ---- rounds ----

TEST_F(TcpTransportTest, DeliversARequestAndItsReplyAndCountsTheirBytes) {
  open();
  begin();
  const std::uint64_t sent = transport->send(1, request(5));
  Codec<double> codec(context);
  EXPECT_EQ(sent, codec.encode(request(5), codec.encode_body(down).get(), nullptr).bytes);
  const auto received = receive(clients[1]);
  ASSERT_TRUE(received);
  EXPECT_EQ(received->request_id, 5u);
  EXPECT_EQ(received->x, x);
  const std::string answer = reply(1, 5, 2.5);
  clients[1].send(answer);
  const Event<double> event = next();
  ASSERT_EQ(event.kind, Kind::kReply);
  EXPECT_EQ(event.bytes, answer.size());
  EXPECT_EQ(event.up.client, 1u);
  ASSERT_EQ(event.up.parts.size(), 1u);
  EXPECT_EQ(event.up.parts[0].values[2], 2.5);
}

TEST_F(TcpTransportTest, ReturnsAtTheDeadlineWhileAClientTricklesBytes) {
  open();
  begin();
  transport->send(0, request(1));
  clients[0].send(reply(0, 1, 1).substr(0, 40));
  const double before = transport->now();
  EXPECT_EQ(next(0.05).kind, Kind::kTimeout);
  EXPECT_GE(transport->now() - before, 0.05);
  EXPECT_LT(transport->now() - before, 2);
}

TEST_F(TcpTransportTest, LeavesTheCurrentReplyUnchangedByARepeatedOrLateOne) {
  open();
  begin();
  transport->send(0, request(1));
  clients[0].send(reply(0, 1, 11) + reply(0, 1, 12) + reply(0, 1, 13));
  const Event<double> first = next();
  ASSERT_EQ(first.up.parts.size(), 1u);
  for (int k = 0; k < 2; ++k) {
    const Event<double> repeated = next();
    EXPECT_EQ(repeated.kind, Kind::kReply);
    EXPECT_EQ(repeated.up.parts.size(), 0u);
  }
  EXPECT_EQ(first.up.parts[0].values[0], 11);
  transport->send(0, request(2));
  clients[0].send(reply(0, 1, 14));
  clients[0].send(reply(0, 2, 21));
  EXPECT_EQ(next().up.parts.size(), 0u) << "a late reply is not used";
  const Event<double> second = next();
  EXPECT_EQ(second.up.request_id, 2u);
  ASSERT_EQ(second.up.parts.size(), 1u);
  EXPECT_EQ(second.up.parts[0].values[0], 21);
}

// settle() copies unsent data before the model changes, with and without zero-copy sends.
TEST_F(TcpTransportTest, KeepsUnreadDataWhenTheModelChanges) {
  constexpr std::uint32_t kLarge = 2 << 20;  // 16 MB: more than sockets hold
  for (const bool is_zero_copy : {false, true}) {
    clients.clear();
    transport.reset();
    zero_copy = is_zero_copy;
    open(patient(), kLarge);
    begin();
    const std::uint64_t bytes = transport->send(0, request(1));
    transport->send(1, request(1));
    EXPECT_GT(bytes, 8u * kLarge);
    const Vec<double> sent = x;
    EXPECT_EQ(next(0.05).kind, Kind::kTimeout);
    transport->settle();
    std::fill(x.begin(), x.end(), -1);
    for (FakeClient& client : clients) {
      const auto received = receive(client);
      ASSERT_TRUE(received);
      EXPECT_TRUE(received->x == sent) << is_zero_copy;
    }
    expect_served(0, 2);
  }
}

TEST_F(TcpTransportTest, ReplacesAWaitingRequestByANewerOne) {
  constexpr std::uint32_t kLarge = 2 << 20;
  open(patient(), kLarge);
  begin();
  for (std::uint64_t request_id = 1; request_id <= 4; ++request_id) {
    transport->send(0, request(request_id));
    EXPECT_EQ(next(0.01).kind, Kind::kTimeout);
    transport->settle();
  }
  EXPECT_EQ(receive(clients[0]).value_or(Received{}).request_id, 1u) << "its writing had begun";
  EXPECT_EQ(receive(clients[0]).value_or(Received{}).request_id, 4u);
}

TEST_F(TcpTransportTest, SendsShutdownUntilAllClientsConfirm) {
  open();
  begin();
  Request<double> shutdown;
  shutdown.kind = RequestKind::kShutdown;
  shutdown.request_id = 9;
  for (std::uint32_t c : {0, 1}) EXPECT_GT(transport->send(c, shutdown), 0u);
  const auto hears = [](FakeClient& client) {
    const auto frame = client.read_message();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->prefix.type, FrameType::kRound);
    client.send(heartbeat_frame());  // does not confirm the shutdown
    wire::Received heard;
    heard.set_request_id(9);
    heard.set_receipt(wire::RECEIPT_ACCEPTED);
    client.send(control_frame(FrameType::kReceived, heard));
    client.hang_up();
  };
  hears(clients[1]);
  clients[0].hang_up();  // before it could read
  const double before = transport->now();
  session_manager->finish(milliseconds(50));
  EXPECT_GE(transport->now() - before, 0.05);
  clients[0] = come_back("a");
  hears(clients[0]);
  session_manager->finish(milliseconds(10'000));
  EXPECT_LT(transport->now() - before, 5);
}

// ---- clients that leave and return ----

TEST_F(TcpTransportTest, GivesAReturningClientItsNumberAndReportsIt) {
  open();
  begin();
  transport->send(0, request(3));
  clients[0].hang_up();
  Event<double> event = next();
  EXPECT_EQ(event.kind, Kind::kLeft);
  EXPECT_EQ(event.up.client, 0u);
  EXPECT_GT(transport->send(0, request(4)), 0u) << "counted although it is lost";
  clients[0] = come_back("a");
  event = next();
  EXPECT_EQ(event.kind, Kind::kJoined);
  EXPECT_EQ(event.up.client, 0u);
  transport->send(0, request(4));
  EXPECT_EQ(receive(clients[0]).value_or(Received{}).request_id, 4u);
  clients[0].send(reply(0, 4, 1));
  EXPECT_EQ(next().kind, Kind::kReply);
}

TEST_F(TcpTransportTest, KeepsTheNewestConnectionOfAClientAndEndsTheOther) {
  open();
  begin();
  FakeClient second = come_back("b");
  const auto refusal = clients[1].read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_TRUE(refusal->fatal());
  EXPECT_EQ(next().kind, Kind::kJoined);
  transport->send(1, request(1));
  EXPECT_TRUE(receive(second));
  second.send(reply(1, 1, 1));
  EXPECT_EQ(next().kind, Kind::kReply);
  expect_served(0, 2);
}

TEST_F(TcpTransportTest, AffectsNoOtherClientWhenAConnectionBreaksInAPayload) {
  open();
  begin();
  transport->send(0, request(1));
  const std::string answer = reply(0, 1, 1);
  clients[0].send(answer.substr(0, answer.size() - 5));
  clients[0].hang_up();
  EXPECT_EQ(next().kind, Kind::kLeft);
  expect_served(1, 2);
  clients[0] = come_back("a");
  EXPECT_EQ(next().kind, Kind::kJoined);
  expect_served(0, 3);
}

TEST_F(TcpTransportTest, RefusesAReturningClientWithOtherData) {
  open();
  begin();
  clients[0].hang_up();
  EXPECT_EQ(next().kind, Kind::kLeft);
  FakeClient other = connect();
  other.send(FakeClient::hello_frame("a"));
  ASSERT_TRUE(other.read_message());
  other.send(FakeClient::join_frame(11));
  const auto refusal = other.read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_TRUE(refusal->fatal());
  EXPECT_NE(refusal->message().find("other data"), std::string::npos) << refusal->message();
}

TEST_F(TcpTransportTest, RefusesAThirdClientOfTwo) {
  open();
  begin();
  FakeClient third = connect();
  third.send(FakeClient::hello_frame("c"));
  const auto refusal = third.read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_TRUE(refusal->fatal());
  expect_served(0, 1);
}

TEST_F(TcpTransportTest, FreesThePlaceOfAClientLostBeforeTheRun) {
  open();
  {
    FakeClient first = connect();
    ASSERT_EQ(first.shake_hands("a"), 0u);
    FakeClient second = connect();
    ASSERT_EQ(second.shake_hands("b"), 1u);
  }
  turn_for(milliseconds(50));
  EXPECT_EQ(session_manager->table().joined_count(), 0u);
  FakeClient third = connect();
  EXPECT_EQ(third.shake_hands("c"), 0u);
}

TEST_F(TcpTransportTest, KeepsTheNewestProcessBeforeTheRunAndEndsTheOther) {
  open();
  FakeClient first = connect();
  ASSERT_EQ(first.shake_hands("a"), 0u);
  FakeClient second = connect();
  second.send(FakeClient::hello_frame("a"));
  ASSERT_TRUE(second.read_message()) << "its Welcome";
  turn_for(milliseconds(30));
  EXPECT_EQ(session_manager->table().joined_count(), 1u) << "a Hello replaces no client: it may be stale";
  second.send(FakeClient::join_frame(11));
  const auto refusal = first.read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_TRUE(refusal->fatal()) << "otherwise both would replace each other repeatedly";
  EXPECT_NE(refusal->message().find("another process has connected as client 0"), std::string::npos);
  turn_for(milliseconds(30));
  EXPECT_EQ(session_manager->table().joined_count(), 1u);
  EXPECT_EQ(session_manager->table().info(0).sample_count, 11u) << "the newest process decides the data";
}

TEST_F(TcpTransportTest, PromotesAWaitingProcessWhenTheOtherLeavesBeforeTheRun) {
  open();
  FakeClient first = connect();
  ASSERT_EQ(first.shake_hands("a"), 0u);
  FakeClient second = connect();
  second.send(FakeClient::hello_frame("a"));
  ASSERT_TRUE(second.read_message());
  first.hang_up();
  turn_for(milliseconds(30));
  EXPECT_EQ(session_manager->table().joined_count(), 0u);
  FakeClient third = connect();
  ASSERT_EQ(third.shake_hands("b"), 1u) << "number 0 belongs to the second process";
  second.send(FakeClient::join_frame(11));
  ASSERT_TRUE(session_manager->gather(milliseconds(2000)));
  EXPECT_EQ(session_manager->table().info(0).name, "a");
}

TEST_F(TcpTransportTest, NamesMissingClientsAfterTheDeadline) {
  open();
  FakeClient client = connect();
  ASSERT_EQ(client.shake_hands("x", 1, 2), 1u);
  try {
    session_manager->gather(milliseconds(50));
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("only 1 of 2 clients have joined; missing: 0;"),
              std::string::npos)
        << error.what();
  }
}

// A slow resolver must not block the clients of a relay.
TEST(TcpSockets, ConnectsToANameWithoutWaitingForTheResolver) {
  std::promise<void> answers;
  const std::shared_future<void> answered = answers.get_future().share();
  TcpOptions options;
  options.look_up = [answered](const Address& address) {
    answered.wait();
    return look_up({"127.0.0.1", address.port}, AddressUse::kToConnect);
  };
  const auto server = listen_on_tcp("127.0.0.1:0");
  const std::string port = server->address().substr(server->address().rfind(':'));
  const auto sockets = listen_on_tcp("127.0.0.1:0", options);
  for (int k = 0; k < 3; ++k) {
    const auto socket = sockets->connect("server.example" + port);
    ASSERT_FALSE(socket);
    EXPECT_EQ(socket.error().message, "server.example" + port + ": its name is being looked up");
  }
  EXPECT_TRUE(sockets->connect("127.0.0.1" + port)) << "numbers need no resolver";
  answers.set_value();
  Result<std::unique_ptr<Socket>> socket = Error{""};
  for (int k = 0; k < 10'000 && !socket; ++k) {
    socket = sockets->connect("server.example" + port);
    if (!socket) std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(socket);
}

}  // namespace
}  // namespace gradwire
