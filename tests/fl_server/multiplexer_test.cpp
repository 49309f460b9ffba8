// Tests of clients of a relay that the test drives by hand, as the server sees them.
#include <gtest/gtest.h>

#include "tests/fl_server/multiplexer_fixture.h"

namespace gradwire {
namespace {

TEST_F(MultiplexerTest, SendsABodyOnceForAllClientsOfTheSite) {
  open();
  FakeClient relay = begin_through_relay();
  for (const std::uint64_t request_id : {1, 2}) {
    const Request<double> asked = request(request_id);
    const std::uint64_t bytes = transport->send(0, asked);
    EXPECT_EQ(transport->send(1, asked), bytes) << "counted at its size for the client";
    const auto first = relay.read_message(), second = relay.read_message();
    ASSERT_TRUE(first && second);
    EXPECT_TRUE(round_in(*first).has_body());
    EXPECT_EQ(first->prefix.payload_len, kDim * sizeof(double));
    EXPECT_TRUE(round_in(*second).same_body());
    EXPECT_FALSE(round_in(*second).has_body());
    EXPECT_EQ(second->prefix.payload_len, 0u);
    EXPECT_EQ(second->prefix.channel, 2u);
    for (const std::uint32_t client : {0, 1})
      relay.send(on_channel(reply(client, request_id, 3), client + 1));
  }
  for (int k = 0; k < 2; ++k) EXPECT_EQ(next().kind, Kind::kReply);
}

TEST_F(MultiplexerTest, RefusesAMisbehavingClientAndServesItsNeighbour) {
  open();
  FakeClient relay = begin_through_relay();
  for (const std::uint32_t client : {0, 1}) transport->send(client, request(1));
  ASSERT_TRUE(relay.read_message() && relay.read_message());
  relay.send(on_channel(reply(1, 1, 3), 1));  // under its neighbour's number
  const auto refusal = relay.read_message();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->prefix.type, FrameType::kError);
  EXPECT_EQ(refusal->prefix.channel, 1u);
  relay.send(on_channel(reply(1, 1, 3), 2));
  EXPECT_EQ(next().kind, Kind::kLeft);
  const Event<double> event = next();
  ASSERT_EQ(event.kind, Kind::kReply);
  EXPECT_EQ(event.up.client, 1u);
}

TEST_F(MultiplexerTest, LosesAllClientsOfALostRelayAndLetsThemReconnectElsewhere) {
  open();
  FakeClient relay = begin_through_relay();
  relay.hang_up();
  for (int k = 0; k < 2; ++k) EXPECT_EQ(next().kind, Kind::kLeft);
  clients.push_back(come_back("a"));
  EXPECT_EQ(next().kind, Kind::kJoined);
  FakeClient other = join();
  other.send(on_channel(FakeClient::hello_frame("b"), 7));
  ASSERT_TRUE(other.read_message());
  other.send(on_channel(FakeClient::join_frame(), 7));
  EXPECT_EQ(next().kind, Kind::kJoined);
}

TEST_F(MultiplexerTest, AsksRelaysThatSendTheSameHelloToReconnect) {
  open();
  FakeClient relay = join(), copy = join();
  wire::Hello hello;
  hello.set_protocol(kWireVersion);
  hello.set_client_name("a");
  hello.set_process(7);
  hello.set_connection(1);
  const std::string frame = on_channel(control_frame(FrameType::kHello, hello), 1);
  relay.send(frame);
  ASSERT_TRUE(relay.read_message());
  copy.send(frame);
  for (FakeClient* each : {&relay, &copy}) {
    const auto refusal = each->read_refusal();
    ASSERT_TRUE(refusal);
    EXPECT_FALSE(refusal->fatal());
    EXPECT_EQ(refusal->message(), "its frames arrive twice; reconnect");
  }
  FakeClient again = join();
  hello.set_connection(2);
  again.send(on_channel(control_frame(FrameType::kHello, hello), 1));
  const auto welcome = again.read_message();
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->prefix.type, FrameType::kWelcome);
}

TEST_F(MultiplexerTest, DropsMessagesOfUnknownChannels) {
  open();
  FakeClient relay = begin_through_relay();
  relay.send(on_channel(reply(0, 1, 3), 9));
  relay.send(on_channel(heartbeat_frame(), 8));
  transport->send(0, request(1));
  const auto round = relay.read_message();
  ASSERT_TRUE(round);
  EXPECT_EQ(round->prefix.type, FrameType::kRound);
}

TEST_F(MultiplexerTest, RefusesClientsThatUseChannelsOrPoseAsRelays) {
  open();
  FakeClient client = connect();
  client.send(on_channel(FakeClient::hello_frame("a"), 3));
  EXPECT_TRUE(client.read_refusal());
  FakeClient relay = join();
  wire::Relay again;
  again.set_protocol(kWireVersion);
  relay.send(on_channel(FakeClient::hello_frame("b"), 1));
  ASSERT_TRUE(relay.read_message());
  relay.send(on_channel(control_frame(FrameType::kRelay, again), 1));
  const auto refusal = relay.read_message();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->prefix.type, FrameType::kError);
  EXPECT_EQ(refusal->prefix.channel, 1u);
}

TEST_F(MultiplexerTest, RefusesARelayOfAnotherVersionPermanently) {
  open();
  FakeClient relay = connect();
  wire::Relay hello;
  hello.set_protocol(99);
  relay.send(control_frame(FrameType::kRelay, hello));
  const auto refusal = relay.read_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_TRUE(refusal->fatal());
}

}  // namespace
}  // namespace gradwire
