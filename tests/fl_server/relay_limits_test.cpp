// Tests of a relay's limits of connections and handshakes. They are the same as a server's.
#include "fl_server/relay/relay.h"
#include "tests/fl_server/tcp_fixture.h"

namespace gradwire {
namespace {

class RelayLimitsTest : public ::testing::Test {
 protected:
  // Starts a relay. No server listens at its upstream address, which does not matter here.
  void open() {
    options.upstream = "127.0.0.1:1";
    options.handle_signals = false;
    options.server_metrics = &server_metrics;
    options.times.linger = milliseconds(20);
    options.log = [this](const LogLine& line) { lines.push_back(line.text); };
    auto sockets = listen_on_tcp("127.0.0.1:0");
    layer = sockets.get();
    relay = make_relay(options, std::move(sockets));
    relay->start();
  }
  void turn() {
    layer->wait(layer->now() + milliseconds(1), [] { return false; });
  }
  // Waits until the relay has accepted or closed this many connections.
  void expect_decided(std::uint64_t count) {
    const auto decided = [&] {
      return server_metrics.accepted.value() + server_metrics.endings.value(Ending::kFromOneOrigin) >= count;
    };
    layer->wait(layer->now() + std::chrono::seconds(5), decided);
    EXPECT_TRUE(decided());
  }
  FakeClient connect() {
    return FakeClient(layer->address(), [this] { turn(); });
  }
  std::size_t count_logged(const std::string& text) const {
    return static_cast<std::size_t>(std::count_if(
        lines.begin(), lines.end(), [&](const std::string& line) { return line.find(text) != line.npos; }));
  }

  ServerMetrics server_metrics;
  std::vector<std::string> lines;
  RelayOptions options;
  SocketLayer* layer = nullptr;
  std::unique_ptr<RelayRun> relay;
};

TEST_F(RelayLimitsTest, ClosesConnectionsBeforeTheirHandshakesIfTooManyBegin) {
  options.handshakes = {.from_address = {.per_second = 1e-6, .burst = 3},
                        .in_all = {.per_second = 1e-6, .burst = 100}};
  open();
  std::vector<FakeClient> flood;
  for (int k = 0; k < 8; ++k) flood.push_back(connect());
  expect_decided(8);
  EXPECT_EQ(server_metrics.accepted.value(), 3u);
  EXPECT_EQ(count_logged("too many new handshakes, the last one from 127.0.0.1"), 5u);
}

TEST_F(RelayLimitsTest, ClosesTheOldestUnauthenticatedConnectionOfAnAddressWithTooMany) {
  options.most_from_address = 4;
  open();
  std::vector<FakeClient> flood;
  for (int k = 0; k < 10; ++k) {
    flood.push_back(connect());
    turn();
  }
  const auto logged = [&] { return count_logged("more than 4 connections come from 127.0.0.1") > 0; };
  layer->wait(layer->now() + std::chrono::seconds(5), logged);
  EXPECT_TRUE(logged());
  EXPECT_GT(server_metrics.endings.value(Ending::kFromOneOrigin), 0u);
}

TEST_F(RelayLimitsTest, AcceptsConnectionsAgainOnceOthersHaveEnded) {
  options.most_from_address = 2;
  open();
  for (int k = 0; k < 10; ++k) {
    FakeClient client = connect();
    const auto refusal = client.read_refusal();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->message(), "this relay has no server at the moment");
    EXPECT_TRUE(client.is_hung_up_on());
    client.hang_up();
    for (int turns = 0; turns < 1000 && server_metrics.open.value() > 0; ++turns) turn();
  }
  EXPECT_EQ(count_logged("connections come from"), 0u);
}

}  // namespace
}  // namespace gradwire
