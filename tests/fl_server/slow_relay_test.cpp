// Tests of a relay that reads slowly or not at all: it costs the server neither memory nor time.
#include <fstream>

#include "tests/fl_server/multiplexer_fixture.h"
#include "tests/support/sanitized.h"

#if GRADWIRE_SANITIZED
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();  // GCC installs no header for it
#endif

namespace gradwire {
namespace {

using SlowRelayTest = MultiplexerTest;

constexpr std::uint32_t kLarge = 2 << 20;  // 16 MB: more than sockets hold

double held_mb() {
#if GRADWIRE_SANITIZED
  // The process size does not tell: sanitizers keep freed memory for a while.
  return static_cast<double>(__sanitizer_get_current_allocated_bytes()) / (1 << 20);
#else
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * 4096 / (1 << 20);
#endif
}

TEST_F(SlowRelayTest, ReceivesOnlyTheNewestRequestsAndTheirBodyOnce) {
  open(patient(), kLarge);
  FakeClient relay = begin_through_relay();
  for (std::uint64_t request_id = 1; request_id <= 4; ++request_id) {
    for (const std::uint32_t client : {0, 1}) transport->send(client, request(request_id));
    EXPECT_EQ(next(0.01).kind, Kind::kTimeout);
  }
  const auto begun = relay.read_message();
  ASSERT_TRUE(begun);
  EXPECT_EQ(round_in(*begun).request_id(), 1u);
  EXPECT_EQ(begun->payload.size(), 8u * kLarge);
  const auto whole = relay.read_message(), same = relay.read_message();
  ASSERT_TRUE(whole && same);
  EXPECT_EQ(whole->prefix.channel, 2u) << "its turn came first";
  EXPECT_EQ(same->prefix.channel, 1u);
  EXPECT_EQ(round_in(*whole).request_id(), 4u);
  EXPECT_EQ(round_in(*same).request_id(), 4u);
  ASSERT_EQ(whole->payload.size(), 8u * kLarge);
  double first = 0;
  std::memcpy(&first, whole->payload.data(), sizeof first);
  EXPECT_EQ(first, 4);
  EXPECT_TRUE(round_in(*same).same_body());
  EXPECT_EQ(same->payload.size(), 0u);
}

TEST_F(SlowRelayTest, DoesNotGrowTheServer) {
  constexpr std::uint32_t kBig = 1 << 18;  // 2 MB
  WireTimes times = patient();
  open(times, 4 * kBig);
  FakeClient relay = begin_through_relay();
  double before = 0;
  for (std::uint64_t request_id = 1; request_id <= 200; ++request_id) {
    for (const std::uint32_t client : {0, 1}) transport->send(client, request(request_id));
    EXPECT_EQ(next(0).kind, Kind::kTimeout);
    if (request_id == 20) before = held_mb();
  }
  EXPECT_LT(held_mb(), before + 60) << "the requests have 1.4 GB in all";
}

TEST_F(SlowRelayTest, IsDisconnectedIfItOpensChannelsAndReadsNothing) {
  // The address sanitizer takes minutes for the messages that fill a socket's buffers, and clients time out
  // meanwhile. The other builds run this test.
  if (kSanitized) GTEST_SKIP();
  most_for_relay_bytes = 1 << 20;
  experiment.assign(60'000, 'x');  // large, so that few channels make the relay wait
  open();
  begin();
  FakeClient relay = join(64 << 10);
  std::string hellos;
  for (std::uint32_t channel = 1; channel <= 1000; ++channel)
    hellos += on_channel(FakeClient::hello_frame("a"), channel);
  for (int k = 0; k < 1000 && !logged("wait for it to take them"); ++k) relay.send(hellos);
  EXPECT_TRUE(logged("wait for it to take them"));
  expect_served(0, 1);
  expect_served(1, 2);
}

}  // namespace
}  // namespace gradwire
