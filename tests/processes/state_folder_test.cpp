// Tests of state folders that are removed, shared or used by another program.
#include <csignal>
#include <gtest/gtest.h>

#include "tests/processes/process_fixture.h"

namespace gradwire {
namespace {

TEST_F(ProcessTest, RejectsASecondServerEvenIfTheLockFileWasRemoved) {
  write_config();
  const Process server = start_server();
  fs::remove(state() / "lock");
  expect_refusal("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "state"}, 1,
                 "is in use by process ");
}

TEST_F(ProcessTest, RejectsARelayInTheFolderOfAServer) {
  write_config();
  const std::vector<std::string> relay = {"relay",       "--upstream", "127.0.0.1:1", "--listen",
                                          "127.0.0.1:0", "--state",    "state"};
  {
    Process server = start_server({"--set", "run.rounds=1000000"});
    const std::string before = read_file(state() / "address");
    expect_refusal("gradwire-server", relay, 1, "is in use by process " + std::to_string(server.pid()));
    EXPECT_EQ(read_file(state() / "address"), before);
    std::vector<Process> clients = start_clients(address);
    ASSERT_TRUE(eventually([&] { return records() > 3; })) << server.log();
  }
  expect_refusal("gradwire-server", relay, 2,
                 "holds the run of a server; give the relay a folder of its own");
}

TEST_F(ProcessTest, EndsWithoutItsFolderAndContinuesOnceItReturns) {
  write_config();
  const std::vector<std::string> rounds = {"--set", "run.rounds=6000"};
  Process server = start_server(rounds);
  std::vector<Process> clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
  const fs::path mounted = folder.path() / "mounted";
  fs::rename(state(), mounted);
  fs::create_directory(state());
  EXPECT_EQ(server.wait(), 1) << server.log();
  EXPECT_NE(server.log().find("is no longer the same folder"), std::string::npos) << server.log();
  EXPECT_TRUE(fs::is_empty(state())) << "nothing may be written to the mount point of the folder";
  fs::remove(state());
  fs::rename(mounted, state());
  server = restart_server(rounds);
  expect_all_end_well(server, clients);
  expect_same_as_simulated({rounds[1]});
}

}  // namespace
}  // namespace gradwire
