// Tests that clients which send while they compute (server.overlap) give the same bits, and send as many
// bytes, as other clients.
#include <csignal>
#include <gtest/gtest.h>

#include "tests/processes/process_fixture.h"
#include "tests/processes/relay.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

// Returns an experiment with a network of 52,650 parameters, 210 KB. Its backward pass finishes the last
// layers first.
std::string overlapping(const std::string& algorithm, int rounds) {
  return R"(name = "overlap"
precision = "fp32"
[problem]
kind = "mlp"
data = "digits"
hidden = [256, 128]
[clients]
count = 3
[run]
evaluate_every = 4
rounds = )" +
         std::to_string(rounds) +
         "\n[server]\noverlap = true\nzstd = \"off\"\ndeadline_ms = 2000\n[algorithm]\n" + algorithm;
}

class OverlapProcessTest : public ProcessTest {
 protected:
  Process start_digits_client(std::uint32_t part, const std::string& where) {
    return start_client(part, where, "digits");
  }
  std::vector<Process> start_digits_clients(const std::string& where) {
    std::vector<Process> clients;
    for (std::uint32_t part = 0; part < client_count; ++part)
      clients.push_back(start_digits_client(part, where));
    return clients;
  }
  static bool overlapped(const Process& client) {
    return client.log().find("were sent while they were computed") != std::string::npos;
  }
};

TEST_F(OverlapProcessTest, GivesTheBitsAndCountsTheBytesOfTheSimulation) {
  const std::vector<std::string> algorithms = {
      "name = \"gd\"\nstep_size = 0.1\n", "name = \"gd\"\nstep_size = 0.1\nbatch = 32\n",
      "name = \"dcgd\"\ncompressor = \"permk\"\nstep_size = 0.05\n",
      "name = \"dcgd\"\ncompressor = \"randseqk:k=60%\"\nstep_size = 0.05\npartial_gradient = true\n",
      "name = \"diana\"\ncompressor = \"randk:k=50%\"\nstep_size = 0.05\n"};
  // On a busy machine a client may finish before its sending thread runs, so more runs follow if none
  // overlapped.
  constexpr std::size_t kMostRuns = 50;
  std::size_t overlaps = 0;
  for (std::size_t k = 0; k < algorithms.size() || (overlaps == 0 && k < kMostRuns); ++k) {
    const std::string& algorithm = algorithms[k % algorithms.size()];
    SCOPED_TRACE(algorithm);
    fs::remove_all(state());
    for (std::uint32_t part = 0; part < client_count; ++part)
      fs::remove(folder.path() / ("client" + std::to_string(part) + ".log"));
    write_config(overlapping(algorithm, 6));
    Process server = start_server();
    std::vector<Process> clients = start_digits_clients(address);
    expect_all_end_well(server, clients);
    expect_same_as_simulated();
    for (const Process& client : clients) overlaps += overlapped(client) ? 1 : 0;
  }
  EXPECT_GT(overlaps, 0u) << "the sending threads never ran";
}

TEST_F(OverlapProcessTest, HasNoEffectIfAReplyIsNotACompressedGradient) {
  write_config(overlapping("name = \"ef21\"\ncompressor = \"topk:k=5%\"\nstep_size = 0.05\n", 5));
  Process server = start_server();
  std::vector<Process> clients = start_digits_clients(address);
  expect_all_end_well(server, clients);
  expect_same_as_simulated();
  for (const Process& client : clients) EXPECT_FALSE(overlapped(client)) << client.log();
}

TEST_F(OverlapProcessTest, KeepsTheBitsWhenTheNetworkLosesConnections) {
  write_config(overlapping("name = \"gd\"\nstep_size = 0.1\n", 12));
  Process server = start_server();
  Relay relay(address, 1'500'000);
  std::vector<Process> clients = start_digits_clients(relay.address());
  expect_all_end_well(server, clients, 60);
  EXPECT_GT(relay.cuts(), 3);
  const Prepared prepared = prepare(load_experiment(folder.path() / "run.toml", {}));
  const std::atomic<bool> never = false;
  EXPECT_EQ(read_model(state() / "model.bin"), simulate(prepared, false, 1, {}, never).model);
}

TEST_F(OverlapProcessTest, KeepsTheBitsWhenEitherSideIsKilled) {
  clients_remember = true;
  write_config(
      overlapping("name = \"diana\"\ncompressor = \"randseqk:k=60%\"\nstep_size = 0.05\n", scaled(120)));
  Process server = start_server();
  std::vector<Process> clients = start_digits_clients(address);
  for (int k = 0; k < 4; ++k) {
    ASSERT_TRUE(eventually([&, before = records()] {
      return records() > before || fs::exists(state() / "model.bin");
    })) << server.log();
    if (fs::exists(state() / "model.bin")) break;
    if (k % 2 == 0) {
      clients[1].kill(SIGKILL);
      if (clients[1].wait() == 0) break;
      clients[1] = start_digits_client(1, address);
    } else {
      server.kill(SIGKILL);
      if (server.wait() == 0) break;
      server = restart_server();
    }
  }
  expect_all_end_well(server, clients, 60);
  expect_same_as_simulated();
}

}  // namespace
}  // namespace gradwire
