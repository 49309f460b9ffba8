// Sites: a server, relays and clients as processes.
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
    std::vector<std::string> arguments = {"--upstream", address, "--listen", listen, "--state", name};
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
  // A run with all clients behind one relay; it, the server and one of the clients are killed in turn.
  void run_with_kills(int kills) {
    Process server = start_server();
    Process relay = start_relay("site");
    const std::string site = address_of("site");
    std::vector<Process> clients = start_clients(site);
    std::mt19937 random(test_seed());
    for (int k = 0; k < kills; ++k) {
      ASSERT_TRUE(eventually([&, before = records()] {
        return records() > before || fs::exists(state() / "model.bin");
      })) << server.log()
          << relay.log();
      if (fs::exists(state() / "model.bin")) break;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 100'000));
      const std::uint32_t victim = static_cast<std::uint32_t>(random()) % client_count;
      if (k % 3 == 0) {
        relay.kill(SIGKILL);
        relay.wait();
        relay = start_relay("site", site);
      } else if (k % 3 == 1) {
        server.kill(SIGKILL);
        if (server.wait() == 0) break;
        server = restart_server();
      } else {
        clients[victim].kill(SIGKILL);
        if (clients[victim].wait() == 0) break;
        clients[victim] = start_client(victim, site);
      }
    }
    expect_all_end_well(server, clients);
    EXPECT_EQ(relay.wait(), 0) << relay.log();
  }

  bool relays_add = false;  // --aggregate
};

}  // namespace gradwire
