// A fixture: a server with two clients of a relay that the test drives by hand.
#pragma once

#include <string>

#include "fl_server/sessions/multiplexer.h"
#include "tests/fl_server/tcp_fixture.h"

namespace gradwire {

class MultiplexerTest : public TcpTransportTest {
 protected:
  // Returns a relay that has joined.
  FakeClient join(int receive_bytes = 0) {
    FakeClient relay = connect(receive_bytes);
    wire::Relay hello;
    hello.set_protocol(kWireVersion);
    if (adds) hello.set_adds(true);
    relay.send(control_frame(FrameType::kRelay, hello));
    const auto answer = relay.read_message();
    EXPECT_TRUE(answer && answer->prefix.type == FrameType::kRelay);
    return relay;
  }
  // Joins clients "a" and "b" on channels 1 and 2, and begins the run.
  FakeClient begin_through_relay() {
    FakeClient relay = join();
    for (const std::uint32_t channel : {1, 2}) {
      relay.send(on_channel(FakeClient::hello_frame(channel == 1 ? "a" : "b"), channel));
      const auto welcome = relay.read_message();
      EXPECT_TRUE(welcome && welcome->prefix.type == FrameType::kWelcome);
      EXPECT_EQ(welcome ? welcome->prefix.channel : 0, channel);
      relay.send(on_channel(FakeClient::join_frame(), channel));
    }
    EXPECT_TRUE(session_manager->gather(milliseconds(2000)));
    start();
    for (const FrameType type : {FrameType::kRelay, FrameType::kStart, FrameType::kStart}) {
      const auto frame = relay.read_message();
      EXPECT_TRUE(frame && frame->prefix.type == type);
      if (frame && type == FrameType::kRelay) {
        EXPECT_TRUE(told.ParseFromString(frame->header));
      }
    }
    return relay;
  }
  static wire::Round round_in(const FakeFrame& frame) {
    wire::Round round;
    EXPECT_EQ(frame.prefix.type, FrameType::kRound);
    EXPECT_TRUE(round.ParseFromString(frame.header));
    return round;
  }

  bool adds = false;  // the relay adds up replies
  wire::Relay told;   // the server's message to the relay when the run began
};

}  // namespace gradwire
