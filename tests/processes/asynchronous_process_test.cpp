// Tests of asynchronous algorithms with real processes: one client is stopped, and the server does not wait
// for it.
#include <chrono>
#include <csignal>
#include <gtest/gtest.h>
#include <thread>

#include "tests/processes/process_fixture.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

class AsynchronousProcessTest : public ProcessTest {
 protected:
  void write_config_of(const std::string& algorithm, int steps) {
    std::string config = kConfig;
    config.erase(config.find("weights"), std::string("weights = \"samples\"\n").size());
    const std::size_t begin = config.find("[algorithm]"), end = config.find("[server]");
    config.replace(begin, end - begin,
                   "[algorithm]\n" + algorithm + "batch = 4\n[run]\nevaluate_every = 0\nrounds = " +
                       std::to_string(scaled(steps)) + "\n");
    write_config(config);
  }
  // Runs this many steps. Client 0 is stopped during most of them.
  void run_with_a_stopped_client(const std::string& algorithm, int steps) {
    write_config_of(algorithm, steps);
    Process server = start_server();
    std::vector<Process> clients = start_clients(address);
    const auto said = [&](const std::string& part) { return server.log().find(part) != std::string::npos; };
    ASSERT_TRUE(eventually([&] { return said("the run begins"); })) << server.log();
    clients[0].kill(SIGSTOP);
    EXPECT_FALSE(fs::exists(state() / "model.bin")) << "the run ended too soon";
    // The server takes all steps without client 0. Only the shutdown waits for that client.
    EXPECT_TRUE(eventually([&] { return fs::exists(state() / "model.bin"); })) << server.log();
    EXPECT_FALSE(said("no reply; waiting")) << server.log();
    clients[0].kill(SIGCONT);
    expect_all_end_well(server, clients);
    EXPECT_NE(read_model(state() / "model.bin"), std::vector<double>(11)) << "the model did not change";
  }
};

TEST_F(AsynchronousProcessTest, AsgdContinuesWithoutAStoppedClient) {
  run_with_a_stopped_client("name = \"asgd\"\nstep_size = 0.01\n", 40000);
}
TEST_F(AsynchronousProcessTest, DelayAdaptiveAsgdContinuesWithoutAStoppedClient) {
  run_with_a_stopped_client("name = \"delay_adaptive_asgd\"\nstep_size = 0.01\n", 40000);
}
TEST_F(AsynchronousProcessTest, RennalaContinuesWithoutAStoppedClient) {
  run_with_a_stopped_client("name = \"rennala\"\ngradients = 4\nstep_size = 0.1\n", 40000);
}
TEST_F(AsynchronousProcessTest, RingmasterContinuesWithoutAStoppedClient) {
  run_with_a_stopped_client("name = \"ringmaster\"\ndelay_threshold = 6\nstep_size = 0.02\n", 40000);
}
TEST_F(AsynchronousProcessTest, MindFlayerCutsAStoppedClient) {
  run_with_a_stopped_client("name = \"mindflayer\"\nallotted_seconds = 0.002\nstep_size = 0.1\n", 6000);
}

// Ringleader weights all clients equally, so it needs a reply from each. Meanwhile the others keep computing.
TEST_F(AsynchronousProcessTest, RingleaderWaitsForAStoppedClientAndContinuesWithIt) {
  write_config_of("name = \"ringleader\"\nstep_size = 0.05\n", 40000);
  Process server = start_server();
  std::vector<Process> clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return server.log().find("the run begins") != std::string::npos; }));
  for (int time = 0; time < 3; ++time) {
    clients[0].kill(SIGSTOP);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    clients[0].kill(SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  expect_all_end_well(server, clients);
  EXPECT_NE(read_model(state() / "model.bin"), std::vector<double>(11)) << "the model did not change";
}

}  // namespace
}  // namespace gradwire
