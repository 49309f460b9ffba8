// Clients that divide one gradient among several threads give the bits of a simulation.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/experiments/trace.h"
#include "tests/processes/process_fixture.h"

namespace gradwire {
namespace {

class ClientThreads : public ProcessTest {
 protected:
  void SetUp() override {
    write_config(R"(
name = "threads"
precision = "fp32"
[problem]
kind = "mlp"
data = "digits"
hidden = [128, 128]
[clients]
count = 4
[algorithm]
name = "fedavg"
local_steps = 2
step_size = 1.0
local_step_size = 0.1
[run]
rounds = 4
evaluate_every = 1
)");
    client_count = 4;
  }
  Process start(std::uint32_t part, const std::string& threads) {
    return Process(
        "gradwire-client",
        {"--server", address, "--data", "digits#" + std::to_string(part) + "/4", "--threads", threads},
        folder.path() / ("client" + std::to_string(part) + ".log"));
  }
};

TEST_F(ClientThreads, GiveTheBitsOfASimulation) {
  Process server = start_server();
  std::vector<Process> clients;
  for (std::uint32_t part = 0; part < client_count; ++part)
    clients.push_back(start(part, std::to_string(part + 1)));
  expect_all_end_well(server, clients);
  expect_same_as_simulated();
  EXPECT_NE(clients[2].log().find("on 3 threads"), std::string::npos) << clients[2].log();
}

TEST_F(ClientThreads, ChangeNoBitOfASimulationWithFewClients) {
  for (const std::string count : {"1", "2", "3"}) {
    const std::vector<std::string> overrides = {"clients.count=" + count};
    const Prepared prepared = prepare(load_experiment(folder.path() / "run.toml", overrides));
    const RunTrace one = trace(prepared, false, 1), encoded = trace(prepared, true, 1);
    for (const unsigned threads : {2, 7, 16}) {
      EXPECT_EQ(trace(prepared, false, threads), one) << count << ", " << threads;
      EXPECT_EQ(trace(prepared, true, threads), encoded) << count << ", " << threads;
    }
  }
}

TEST_F(ClientThreads, AreRefusedBelowOne) {
  address = "127.0.0.1:1";
  Process client = start(0, "0");
  EXPECT_EQ(client.wait(), 2);
  EXPECT_NE(client.log().find("--threads"), std::string::npos) << client.log();
}

}  // namespace
}  // namespace gradwire
