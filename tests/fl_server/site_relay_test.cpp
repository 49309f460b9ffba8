// Clients behind relays: the bits of clients that are connected to the server itself.
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>

#include "fl_server/hub/trunk.h"
#include "tests/fl_server/site_fixture.h"
#include "tests/fl_server/trunk_fixture.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

class SiteRelayTest : public SiteTest {};

TEST_F(SiteRelayTest, TwoSitesAndTwoClientsOfTheServerGiveTheBitsOfAFlatFederation) {
  for (const std::string algorithm :
       {"name = \"ef21\"\ncompressor = \"topk:k=2\"\nstep_size = 0.3\n",
        "name = \"marina\"\ncompressor = \"randk:k=3\"\nstep_size = 0.1\n",
        "name = \"diana\"\ncompressor = \"natural\"\nstep_size = 0.1\n",
        "name = \"scaffold\"\nlocal_steps = 2\nlocal_step_size = 0.1\n",
        "name = \"ef21_bc\"\ncompressor = \"topk:k=2\"\ncompressor_down = \"topk:k=4\"\nstep_size = 0.1\n"}) {
    fs::remove_all(state());
    write_config_of(algorithm, 100);
    Process server = start_server();
    Process north = start_relay("north"), south = start_relay("south");
    std::vector<Process> clients;
    clients.push_back(start_client(0, address_of("north")));
    clients.push_back(start_client(1, address_of("south")));
    clients.push_back(start_client(2, address));
    clients.push_back(start_client(3, address_of("north")));
    expect_all_end_well(server, clients);
    expect_same_as_simulated();
    EXPECT_EQ(north.wait(), 0) << north.log();
    EXPECT_EQ(south.wait(), 0) << south.log();
  }
}

TEST_F(SiteRelayTest, KillingRelaysServersAndClientsChangesNoBit) {
  const bool long_run = std::getenv("GRADWIRE_KILLS") != nullptr;
  const int kills = long_run ? std::atoi(std::getenv("GRADWIRE_KILLS")) : 6;
  clients_remember = true;
  write_config_of("name = \"ef21\"\ncompressor = \"topk:k=2\"\nstep_size = 0.3\n", kEndless);
  expect_same_as_simulated({"run.rounds=" + std::to_string(run_with_kills(kills))});
}

TEST_F(SiteRelayTest, CarriesAnAsynchronousRunPastTheDeathsOfRelaysServersAndClients) {
  for (const bool adds : {false, true}) {
    relays_add = adds;  // there is nothing to add up: replies come one by one
    fs::remove_all(state());
    write_config_of("name = \"ringmaster\"\ndelay_threshold = 10\nstep_size = 0.05\nbatch = 2\n", kEndless);
    const int steps = run_with_kills(6);
    const auto rows = lines_of(read_file(state() / "metrics.csv"));
    EXPECT_EQ(std::stoi(rows.back()), steps);
  }
}

TEST_F(SiteRelayTest, AServerThatIsToldToStopTellsTheSite) {
  write_config_of("name = \"gd\"\nstep_size = 0.3\n", 1'000'000);
  Process server = start_server();
  Process relay = start_relay("site");
  std::vector<Process> clients = start_clients(address_of("site"));
  ASSERT_TRUE(eventually([&] { return records() > 2; }));
  server.kill(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.log();
  server = restart_server({"--set", kSanitized ? "run.rounds=1500" : "run.rounds=4000"});
  expect_all_end_well(server, clients);
  EXPECT_EQ(relay.wait(), 0) << relay.log();
}

// A server that accepts one relay and refuses it for good, once the relay has a client of its own.
TEST_F(SiteRelayTest, ARefusalThatAnotherStartMayMendEndsItWithOneAlsoWhereItHasClients) {
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
    Process relay = start_relay("site");
    const int server_side = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    const int client_side = connect_to(address_of("site"));
    const std::string hello = FakeClient::hello_frame("a");
    ASSERT_EQ(::send(client_side, hello.data(), hello.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(hello.size()));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the relay accepts its client
    const std::string refusal = error_frame("the server ended the run", true, retry_after_ms);
    ASSERT_EQ(::send(server_side, refusal.data(), refusal.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(refusal.size()));
    EXPECT_EQ(relay.wait(), retry_after_ms > 0 ? 1 : 2) << relay.log();
    for (const int fd : {listener, server_side, client_side}) ::close(fd);
  }
}

TEST_F(SiteRelayTest, ARelayThatIsToldToStopLeavesWithZeroAndItsClientsGoOnElsewhere) {
  write_config_of("name = \"gd\"\nstep_size = 0.3\n", kSanitized ? 2'000 : 5'000);
  Process server = start_server();
  Process relay = start_relay("site");
  const std::string site = address_of("site");
  std::vector<Process> clients = start_clients(site);
  ASSERT_TRUE(eventually([&] { return records() > 2; }));
  relay.kill(SIGTERM);
  EXPECT_EQ(relay.wait(), 0) << relay.log();
  relay = start_relay("site", site);
  expect_all_end_well(server, clients);
  EXPECT_EQ(relay.wait(), 0) << relay.log();
}

TEST_F(SiteRelayTest, SaysWhatIsWrongInOneLine) {
  const std::vector<std::string> relay = {"--quiet", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), relay.begin(), relay.end());
    return more;
  };
  expect_refusal("gradwire-server", with({"--give-up-after-ms", "300"}), 1,
                 "no server at 127.0.0.1:1 (Connection refused); giving up after");
  expect_refusal(
      "gradwire-server", with({"run.toml"}), 2,
      "a relay (--upstream) has no experiment of its own: leave FILE.toml and --set to its server");
  expect_refusal("gradwire-server", {"--listen", "127.0.0.1:0", "--state", "x"}, 2, "FILE.toml is required");
  for (const std::vector<std::string>& option :
       {std::vector<std::string>{"--registry", "none"}, {"--join-deadline-ms", "5"}, {"--no-resume"}})
    expect_refusal("gradwire-server", with(option), 2,
                   option[0] + " is for a server: a relay (--upstream) has no run of its own");
  expect_refusal("gradwire-server",
                 {"run.toml", "--listen", "127.0.0.1:0", "--state", "x", "--give-up-after-ms", "5"}, 2,
                 "--give-up-after-ms is for a relay: give the address of its server, --upstream");
  expect_refusal(
      "gradwire-server",
      {"run.toml", "--listen", "127.0.0.1:0", "--state", "x", "--connections-per-address", "5"}, 2,
      "--connections-per-address is for a relay: a server has --set server.connections_per_address=N");
  expect_refusal("gradwire-server", {"--upstream", "here", "--listen", "127.0.0.1:0"}, 2,
                 "--upstream here: write it as HOST:PORT, as in 127.0.0.1:7000");
}

TEST_F(SiteRelayTest, TellsAClientThatItHasNoServer) {
  address = "127.0.0.1:1";
  Process relay = start_relay("site");
  Process client = start_client(0, address_of("site"));
  EXPECT_TRUE(eventually([&] {
    return client.log().find("this relay has no server at the moment; trying again in") != std::string::npos;
  })) << client.log();
}

// ---- the server's end, with a relay written by hand ----

TEST_F(TrunkTest, CarriesABodyOnceForAllClientsOfTheSite) {
  open();
  FakeClient relay = begin_behind_relay();
  for (const std::uint64_t ticket : {1, 2}) {
    const Envelope<double> envelope = request(ticket);
    const std::uint64_t bytes = transport->send(0, envelope);
    EXPECT_EQ(transport->send(1, envelope), bytes) << "counted as the client gets it";
    const auto first = relay.read_message(), second = relay.read_message();
    ASSERT_TRUE(first && second);
    EXPECT_TRUE(round_in(*first).has_body());
    EXPECT_EQ(first->prefix.payload_len, kDim * sizeof(double));
    EXPECT_TRUE(round_in(*second).same_body());
    EXPECT_FALSE(round_in(*second).has_body());
    EXPECT_EQ(second->prefix.payload_len, 0u);
    EXPECT_EQ(second->prefix.channel, 2u);
    for (const std::uint32_t client : {0, 1}) relay.send(on_channel(reply(client, ticket, 3), client + 1));
  }
  for (int k = 0; k < 2; ++k) EXPECT_EQ(next().kind, Kind::kReply);
}

TEST_F(TrunkTest, AClientThatMisbehavesIsRefusedAndItsNeighbourServed) {
  open();
  FakeClient relay = begin_behind_relay();
  for (const std::uint32_t client : {0, 1}) transport->send(client, request(1));
  ASSERT_TRUE(relay.read_message() && relay.read_message());
  relay.send(on_channel(reply(1, 1, 3), 1));  // in its neighbour's name
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

TEST_F(TrunkTest, ARelayThatIsLostLosesAllItsClientsAndTheyComeBackByAnotherWay) {
  open();
  FakeClient relay = begin_behind_relay();
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

TEST_F(TrunkTest, RelaysThatBringTheSameHelloConnectAgain) {
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
    EXPECT_EQ(refusal->message(), "what it sends arrives twice; connect again");
  }
  FakeClient again = join();
  hello.set_connection(2);
  again.send(on_channel(control_frame(FrameType::kHello, hello), 1));
  const auto welcome = again.read_message();
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->prefix.type, FrameType::kWelcome);
}

TEST_F(TrunkTest, MessagesOfUnknownChannelsAreDropped) {
  open();
  FakeClient relay = begin_behind_relay();
  relay.send(on_channel(reply(0, 1, 3), 9));
  relay.send(on_channel(heartbeat_frame(), 8));
  transport->send(0, request(1));
  const auto round = relay.read_message();
  ASSERT_TRUE(round);
  EXPECT_EQ(round->prefix.type, FrameType::kRound);
}

TEST_F(TrunkTest, AClientCannotSpeakOfChannelsOrBecomeARelay) {
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

TEST_F(TrunkTest, ARelayOfAnotherVersionIsRefusedForGood) {
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
