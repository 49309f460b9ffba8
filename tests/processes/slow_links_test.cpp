// Tests server.heartbeat_ms at a server, its clients and its relays, and the options of relays for slow
// links.
#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "tests/processes/site_fixture.h"
#include "tests/support/fake_client.h"

namespace gradwire {
namespace {

class SlowLinks : public SiteTest {
 protected:
  // Says a Hello at `where`, reads the Welcome, and is silent from then on.
  static FakeClient silent_client(const std::string& where) {
    FakeClient client(where, [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
    client.send(FakeClient::hello_frame("silent"));
    const auto welcome = client.read_message();
    EXPECT_TRUE(welcome && welcome->prefix.type == FrameType::kWelcome);
    return client;
  }
};

constexpr const char* kSilence = "no sign of life for 1500 ms";

TEST_F(SlowLinks, HeartbeatsAreThoseOfTheExperimentAlsoBehindARelay) {
  write_config_of("name = \"gd\"\nstep_size = 0.1\n", 20, "heartbeat_ms = 500\n");
  Process server = start_server();
  Process relay = start_relay("site");
  EXPECT_TRUE(eventually([&] { return relay.log().find("joined the server") != std::string::npos; }))
      << relay.log();
  const std::string site = address_of("site");
  {
    const FakeClient at_server = silent_client(address), at_relay = silent_client(site);
    EXPECT_TRUE(eventually([&] { return server.log().find(kSilence) != std::string::npos; })) << server.log();
    EXPECT_TRUE(eventually([&] { return relay.log().find(kSilence) != std::string::npos; })) << relay.log();
  }
  // Clients and relay send as often as they must while they wait for the last client.
  std::vector<Process> clients;
  for (std::uint32_t part = 0; part + 1 < client_count; ++part)
    clients.push_back(start_client(part, part % 2 == 0 ? site : address));
  std::this_thread::sleep_for(std::chrono::milliseconds(4000));
  clients.push_back(start_client(client_count - 1, site));
  expect_all_end_well(server, clients);
  EXPECT_EQ(relay.wait(), 0) << relay.log();
  for (Process& client : clients) EXPECT_EQ(client.log().find("lost"), std::string::npos) << client.log();
}

TEST_F(SlowLinks, RelaysRefuseValuesThatTheyCannotUse) {
  const std::vector<std::string> relay = {"relay", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0"};
  const auto refused = [&](const std::string& option, const std::string& value, const std::string& why) {
    std::vector<std::string> arguments = relay;
    arguments.insert(arguments.end(), {option, value});
    expect_refusal("gradwire-server", arguments, 2, why);
  };
  refused("--tls-min", "TLS1.1", "--tls-min: TLS1.1 not in {TLS1.3,TLS1.2}");
  refused("--min-bytes-per-second", "0", "--min-bytes-per-second: Value 0 not in range");
  Process plain("gradwire-server",
                {"relay", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--tls-min", "TLS1.2",
                 "--min-bytes-per-second", "500", "--give-up-after-ms", "100"},
                folder.path() / "plain.log");
  EXPECT_EQ(plain.wait(), 1);
  EXPECT_NE(plain.log().find("--tls-min has no effect without --identity"), std::string::npos) << plain.log();
}

}  // namespace
}  // namespace gradwire
