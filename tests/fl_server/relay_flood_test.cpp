// Tests of a relay that opens channels endlessly.
#include "tests/fl_server/multiplexer_fixture.h"

namespace gradwire {
namespace {

constexpr int kMoreThanIsPermitted = 4000;

TEST_F(MultiplexerTest, ClosesARelayThatOpensChannelsEndlessly) {
  open();
  begin();
  FakeClient relay = join();
  std::string flood;
  for (std::uint32_t channel = 1; channel <= kMoreThanIsPermitted; ++channel)
    flood += on_channel(FakeClient::hello_frame("x" + std::to_string(channel)), channel);
  relay.send(flood);
  std::string last;
  int refused = 0, full = 0;
  while (const auto frame = relay.read_message()) {
    wire::ErrorMessage error;
    if (frame->prefix.type != FrameType::kError || !error.ParseFromString(frame->header)) continue;
    if (frame->prefix.channel == 0) last = error.message();
    (error.message().find("accepts no more") != std::string::npos ? full : refused) += 1;
  }
  EXPECT_EQ(last, "it repeatedly opens channels too fast");
  EXPECT_GE(refused, 1) << "the first ones are answered";
  const auto is_logged = [&] { return logged("it repeatedly opens channels too fast"); };
  session_manager->wait(session_manager->now() + std::chrono::seconds(5), is_logged);
  EXPECT_TRUE(is_logged());
  expect_served(0, 1);
  expect_served(1, 2);
}

TEST_F(MultiplexerTest, TellsExcessClientsOfARelayToRetryLater) {
  open();
  begin();
  FakeClient relay = join();
  std::optional<wire::ErrorMessage> full;
  for (std::uint32_t channel = 1; channel <= 600 && !full; ++channel) {
    relay.send(on_channel(FakeClient::hello_frame("x" + std::to_string(channel)), channel));
    const auto frame = relay.read_message();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->prefix.channel, channel);
    wire::ErrorMessage error;
    ASSERT_TRUE(error.ParseFromString(frame->header));
    if (!error.fatal()) full = error;
  }
  ASSERT_TRUE(full) << "all of them were admitted";
  EXPECT_EQ(full->message(), "the server accepts no more connections now");
  EXPECT_GT(full->retry_after_ms(), 0u);
  expect_served(0, 1);
}

}  // namespace
}  // namespace gradwire
