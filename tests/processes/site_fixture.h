// A fixture: a server, relays and clients as processes.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/processes/process_fixture.h"
#include "tests/support/test_seed.h"

namespace gradwire {

class SiteTest : public ProcessTest {
 protected:
  SiteTest() { client_count = 4; }

  void write_config_of(const std::string& algorithm, int rounds, const std::string& more = "") {
    write_config(
        "name = \"sites\"\n[problem]\nkind = \"logistic\"\ndata = \"synthetic\"\nsamples = 60\ndim = 11\n"
        "regularizer = \"l2\"\nlambda = 0.01\n[clients]\ncount = 4\n[algorithm]\n" +
        algorithm + "[run]\nevaluate_every = 10\nrounds = " + std::to_string(rounds) +
        "\n[server]\ndeadline_ms = 1000\n" + more);
  }
  Process start_relay(const std::string& name, const std::string& listen = "127.0.0.1:0") {
    fs::remove(folder.path() / name / "address");
    std::vector<std::string> arguments = {"relay", "--upstream", address, "--listen",
                                          listen,  "--state",    name};
    if (relays_add) arguments.push_back("--aggregate");
    Process relay("gradwire-server", arguments, folder.path() / (name + ".log"));
    EXPECT_TRUE(eventually([&] { return fs::exists(folder.path() / name / "address"); })) << relay.log();
    return relay;
  }
  std::string address_of(const std::string& name) const {
    std::string text;
    std::ifstream(folder.path() / name / "address") >> text;
    return text;
  }
  // Runs all clients at one relay. Kills the relay, the server and one of the clients in turn, then lets the
  // run end. The experiment must have kEndless rounds. Returns the number of rounds at the end.
  int run_with_kills(int kills) {
    Process server = start_server();
    Process relay = start_relay("site");
    const std::string site = address_of("site");
    std::vector<Process> clients = start_clients(site);
    std::mt19937 random(test_seed());
    for (int k = 0; k < kills; ++k) {
      EXPECT_TRUE(eventually([&, before = records()] { return records() > before; }))
          << server.log() << relay.log();
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 100'000));
      const std::uint32_t victim = static_cast<std::uint32_t>(random()) % client_count;
      if (k % 3 == 0) {
        relay.kill(SIGKILL);
        relay.wait();
        relay = start_relay("site", site);
      } else if (k % 3 == 1) {
        server.kill(SIGKILL);
        server.wait();
        server = restart_server();
      } else {
        clients[victim].kill(SIGKILL);
        clients[victim].wait();
        clients[victim] = start_client(victim, site);
      }
    }
    EXPECT_TRUE(eventually([&, before = records()] { return records() > before; })) << server.log();
    const int rounds = let_end(server);
    expect_all_end_well(server, clients);
    EXPECT_EQ(relay.wait(), 0) << relay.log();
    return rounds;
  }
  // Stops the server and starts it again with few rounds left. Returns the new number of rounds.
  int let_end(Process& server) {
    server.kill(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << server.log();
    const int rounds = (std::stoi(lines_of(read_file(state() / "metrics.csv")).back()) / 10 + 10) * 10;
    server = restart_server({"--set", "run.rounds=" + std::to_string(rounds)});
    return rounds;
  }
  static constexpr int kEndless = 1'000'000'000;

  bool relays_add = false;  // relays run with --aggregate
};

}  // namespace gradwire
