// Tests of a server whose folder was replaced by an older copy, while its clients know later rounds.
#include <csignal>
#include <gtest/gtest.h>

#include "tests/processes/process_fixture.h"

namespace gradwire {
namespace {

constexpr const char* kForgotten = "has forgotten rounds that client ";
constexpr const char* kEndless = "run.rounds=100000000";

std::string config_of(const std::string& algorithm) {
  std::string text = kConfig;
  const std::size_t begin = text.find("[algorithm]"), end = text.find("[server]");
  text.replace(begin, end - begin,
               "[algorithm]\n" + algorithm + "[run]\nevaluate_every = 50\nrounds = 1000\n");
  return text;
}

class RestoredFolderTest : public ProcessTest {
 protected:
  int last_round() const { return std::stoi(lines_of(read_file(state() / "metrics.csv")).back()); }
  void wait_for_rounds(const Process& server, std::size_t rows) {
    const std::size_t before = records();
    ASSERT_TRUE(eventually([&] { return records() >= before + rows; })) << server.log();
  }
  void kill(Process& server) {
    server.kill(SIGKILL);
    ASSERT_EQ(server.wait(), 128 + SIGKILL) << server.log();
  }

  // Copies the folder of the run, lets the run continue through a restart, and starts the server from the
  // copy. Returns the overrides that end the run soon after.
  std::vector<std::string> restore_older_copy(const std::string& algorithm) {
    std::string config = config_of(algorithm) + more_of_server;
    if (is_asynchronous) config.erase(config.find("weights"), std::string("weights = \"samples\"\n").size());
    write_config(config);
    server.emplace(start_server({"--set", kEndless}));
    if (through_relay) {
      relay.emplace("gradwire-server",
                    std::vector<std::string>{"relay", "--upstream", address, "--listen", "127.0.0.1:0",
                                             "--state", "relay"},
                    folder.path() / "relay.log");
      EXPECT_TRUE(eventually([&] { return fs::exists(folder.path() / "relay" / "address"); }));
      std::ifstream(folder.path() / "relay" / "address") >> of_clients;
    } else {
      of_clients = address;
    }
    clients = start_clients(of_clients);
    EXPECT_TRUE(eventually([&] { return records() > 3; })) << server->log();
    kill(*server);
    const fs::path copy = folder.path() / "copy";
    fs::copy(state(), copy, fs::copy_options::recursive);
    server = restart_server({"--set", kEndless});
    wait_for_rounds(*server, 5);
    kill(*server);
    if (clients_remember)
      for (Process& client : clients) {
        client.kill(SIGKILL);
        EXPECT_EQ(client.wait(), 128 + SIGKILL);
      }
    fs::remove_all(state());
    fs::rename(copy, state());
    const std::vector<std::string> end = {"--set", "run.rounds=" + std::to_string(last_round() + 1000)};
    server = restart_server(end);
    if (clients_remember) clients = start_clients(of_clients);
    return end;
  }
  void expect_both_sides_say_it() {
    EXPECT_NE(server->log().find(kForgotten), std::string::npos) << server->log();
    for (const Process& client : clients)
      EXPECT_NE(client.log().find(kForgotten), std::string::npos) << client.log();
  }
  void expect_the_run_of_the_simulation(const std::string& algorithm) {
    const std::vector<std::string> end = restore_older_copy(algorithm);
    expect_all_end_well(*server, clients, 60);
    expect_both_sides_say_it();
    expect_same_as_simulated({end[1]});
  }
  void expect_the_end_of_the_run(const std::string& algorithm) {
    is_asynchronous = true;
    restore_older_copy(algorithm);
    expect_all_end_well(*server, clients, 60);
    EXPECT_NE(server->log().find(kForgotten), std::string::npos) << server->log();
  }

  std::optional<Process> server, relay;
  std::vector<Process> clients;
  std::string of_clients, more_of_server;
  bool through_relay = false, is_asynchronous = false;
};

TEST_F(RestoredFolderTest, ContinuesARunOfClientsWithoutState) {
  expect_the_run_of_the_simulation("name = \"gd\"\nstep_size = 0.3\n");
}
TEST_F(RestoredFolderTest, RestoresTheStateOfEf21Clients) {
  expect_the_run_of_the_simulation("name = \"ef21\"\ncompressor = \"topk:k=2\"\nstep_size = 0.3\n");
}
TEST_F(RestoredFolderTest, RestoresTheStateOfDianaClientsThroughARelay) {
  through_relay = true;
  expect_the_run_of_the_simulation("name = \"diana\"\ncompressor = \"randk:k=2\"\nstep_size = 0.1\n");
}
TEST_F(RestoredFolderTest, RestoresClientsWithAnswersInTheirJournals) {
  clients_remember = true;
  expect_the_run_of_the_simulation("name = \"ef21\"\ncompressor = \"topk:k=2\"\nstep_size = 0.3\n");
}
TEST_F(RestoredFolderTest, RestoresClientsWithRequestsInTheirJournals) {
  clients_remember = true;
  expect_the_run_of_the_simulation("name = \"marina\"\ncompressor = \"randk:k=2\"\nstep_size = 0.1\n");
}
TEST_F(RestoredFolderTest, RestoresTheReplicaOfCompressedBroadcasts) {
  expect_the_run_of_the_simulation(
      "name = \"ef21_bc\"\ncompressor = \"topk:k=2\"\ncompressor_down = \"topk:k=2\"\nstep_size = 0.1\n");
}
TEST_F(RestoredFolderTest, ContinuesAnAsynchronousRun) {
  expect_the_end_of_the_run("name = \"ringmaster\"\ndelay_threshold = 10\nstep_size = 0.05\nbatch = 4\n");
}
TEST_F(RestoredFolderTest, ContinuesABufferedRunThroughARelay) {
  through_relay = true;
  expect_the_end_of_the_run(
      "name = \"fedbuff\"\nbuffer = 4\nbatch = 4\nlocal_steps = 2\nlocal_step_size = 0.05\n");
}
TEST_F(RestoredFolderTest, EndsARunWhoseClientsCannotBeRestored) {
  more_of_server = "durability = \"process\"\n";
  restore_older_copy("name = \"ef14\"\ncompressor = \"topk:k=2\"\nstep_size = 0.1\n");
  EXPECT_EQ(server->wait(), 1) << server->log();
  EXPECT_NE(server->log().find("restored from an older copy, restore a newer one"), std::string::npos)
      << server->log();
  EXPECT_NE(server->log().find(kForgotten), std::string::npos) << server->log();
}

}  // namespace
}  // namespace gradwire
