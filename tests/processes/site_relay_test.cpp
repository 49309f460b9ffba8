// Tests that clients at relays give the same bits as clients that are connected directly to the server.
#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iterator>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/processes/site_fixture.h"
#include "tests/support/fake_client.h"

namespace gradwire {
namespace {

class SiteRelayTest : public SiteTest {
 protected:
  static std::ptrdiff_t descriptors_of(const Process& process) {
    const fs::path all = fs::path("/proc") / std::to_string(process.pid()) / "fd";
    return std::distance(fs::directory_iterator(all), {});
  }
};

TEST_F(SiteRelayTest, KillingRelaysServersAndClientsChangesNoBit) {
  const bool long_run = std::getenv("GRADWIRE_KILLS") != nullptr;
  const int kills = long_run ? std::atoi(std::getenv("GRADWIRE_KILLS")) : 6;
  clients_remember = true;
  write_config_of("name = \"ef21\"\ncompressor = \"topk:k=2\"\nstep_size = 0.3\n", kEndless);
  expect_same_as_simulated({"run.rounds=" + std::to_string(run_with_kills(kills))});
}

TEST_F(SiteRelayTest, ContinuesAnAsynchronousRunAfterDeathsOfRelaysServersAndClients) {
  for (const bool adds : {false, true}) {
    relays_add = adds;  // nothing is added up, because replies come one by one
    fs::remove_all(state());
    write_config_of("name = \"ringmaster\"\ndelay_threshold = 10\nstep_size = 0.05\nbatch = 2\n", kEndless);
    const int steps = run_with_kills(6);
    const auto rows = lines_of(read_file(state() / "metrics.csv"));
    EXPECT_EQ(std::stoi(rows.back()), steps);
  }
}

TEST_F(SiteRelayTest, ForwardsTheStopOfTheServerToTheSite) {
  write_config_of("name = \"gd\"\nstep_size = 0.3\n", kEndless);
  Process server = start_server();
  Process relay = start_relay("site");
  std::vector<Process> clients = start_clients(address_of("site"));
  ASSERT_TRUE(eventually([&] { return records() > 2; }));
  let_end(server);
  expect_all_end_well(server, clients);
  EXPECT_EQ(relay.wait(), 0) << relay.log();
}

// The server of this test accepts a relay, and rejects it once the relay has a client.
TEST_F(SiteRelayTest, EndsWithCode1OnATemporaryRejectionEvenWithClients) {
  for (const std::uint32_t retry_after_ms : {5000u, 0u}) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof own;
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&own), size), 0);
    ASSERT_EQ(::listen(listener, 4), 0);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&own), &size);
    address = "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
    fs::remove(folder.path() / "site.log");  // so that the wait below is for this relay
    Process relay = start_relay("site");
    const int server_side = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    wire::Relay welcome;
    welcome.set_protocol(kWireVersion);
    welcome.set_heartbeat_ms(1000);
    welcome.set_max_payload(1 << 20);
    const auto send_down = [&](const std::string& frame) {
      ASSERT_EQ(::send(server_side, frame.data(), frame.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(frame.size()));
    };
    send_down(control_frame(FrameType::kRelay, welcome));
    ASSERT_TRUE(eventually([&] { return relay.log().find("joined the server") != std::string::npos; }));
    const auto before = descriptors_of(relay);
    const int client_side = connect_to(address_of("site"));
    const std::string hello = FakeClient::hello_frame("a");
    ASSERT_EQ(::send(client_side, hello.data(), hello.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(hello.size()));
    ASSERT_TRUE(eventually([&] { return descriptors_of(relay) > before; })) << "no client was accepted";
    send_down(error_frame("the server ended the run", true, retry_after_ms));
    EXPECT_EQ(relay.wait(), retry_after_ms > 0 ? 1 : 2) << relay.log();
    for (const int fd : {listener, server_side, client_side}) ::close(fd);
  }
}

TEST_F(SiteRelayTest, EndsWithCode0OnAStopAndItsClientsContinueElsewhere) {
  write_config_of("name = \"gd\"\nstep_size = 0.3\n", kEndless);
  Process server = start_server();
  Process relay = start_relay("site");
  const std::string site = address_of("site");
  std::vector<Process> clients = start_clients(site);
  ASSERT_TRUE(eventually([&] { return records() > 2; }));
  relay.kill(SIGTERM);
  EXPECT_EQ(relay.wait(), 0) << relay.log();
  relay = start_relay("site", site);
  let_end(server);
  expect_all_end_well(server, clients);
  EXPECT_EQ(relay.wait(), 0) << relay.log();
}

TEST_F(SiteRelayTest, ReportsErrorsInOneLine) {
  const std::vector<std::string> relay = {"relay",       "--quiet",  "--upstream",
                                          "127.0.0.1:1", "--listen", "127.0.0.1:0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), relay.begin(), relay.end());
    return more;
  };
  expect_refusal("gradwire-server", with({"--give-up-after-ms", "300"}), 1,
                 "no server at 127.0.0.1:1 (Connection refused); giving up after");
  expect_refusal("gradwire-server", with({"run.toml"}), 2,
                 "a relay has no experiment: give FILE.toml and --set to its server");
  expect_refusal("gradwire-server", {"--listen", "127.0.0.1:0", "--state", "x"}, 2, "FILE.toml is required");
  for (const std::vector<std::string>& option :
       {std::vector<std::string>{"--registry", "none"}, {"--join-deadline-ms", "5"}, {"--no-resume"}})
    expect_refusal("gradwire-server", with(option), 2,
                   option[0] + " is only for servers: a relay has no run of its own");
  expect_refusal("gradwire-server",
                 {"run.toml", "--listen", "127.0.0.1:0", "--state", "x", "--give-up-after-ms", "5"}, 2,
                 "--give-up-after-ms is only for relays: gradwire-server relay --upstream HOST:PORT");
  expect_refusal("gradwire-server",
                 {"run.toml", "--listen", "127.0.0.1:0", "--state", "x", "--connections-per-address", "5"}, 2,
                 "--connections-per-address is only for relays: for a server, use --set "
                 "server.connections_per_address=N");
  expect_refusal("gradwire-server", {"relay", "--upstream", "here", "--listen", "127.0.0.1:0"}, 2,
                 "--upstream here: write it as HOST:PORT, as in 127.0.0.1:7000");
}

TEST_F(SiteRelayTest, TheFormWithoutTheCommandWorksAndWarnsOnce) {
  const std::string warning =
      "gradwire-server --upstream is now gradwire-server relay --upstream; the old form works until version ";
  int forms = 0;
  const auto said = [&](const std::vector<std::string>& form, int code) {
    std::vector<std::string> arguments = form;
    arguments.insert(arguments.end(), {"--listen", "127.0.0.1:0", "--give-up-after-ms", "1"});
    Process relay("gradwire-server", arguments, folder.path() / ("form" + std::to_string(++forms) + ".log"));
    EXPECT_EQ(relay.wait(), code) << relay.log();
    const std::string log = relay.log();
    std::size_t warnings = 0;
    for (std::size_t at = log.find(warning); at != log.npos; at = log.find(warning, at + 1)) ++warnings;
    EXPECT_NE(log.find("127.0.0.1:1"), log.npos) << log;
    return warnings;
  };
  EXPECT_EQ(said({"relay", "--upstream", "127.0.0.1:1"}, 1), 0u);
  EXPECT_EQ(said({"--upstream", "127.0.0.1:1"}, 1), 1u);
  EXPECT_EQ(said({"--upstream=127.0.0.1:1"}, 1), 1u);
}

TEST_F(SiteRelayTest, TellsAClientThatItHasNoServer) {
  address = "127.0.0.1:1";
  Process relay = start_relay("site");
  Process client = start_client(0, address_of("site"));
  EXPECT_TRUE(eventually([&] {
    return client.log().find("this relay has no server at the moment; trying again in") != std::string::npos;
  })) << client.log();
}

}  // namespace
}  // namespace gradwire
