// Tests of gradwire-server status as operators see it: stalled runs, relays, and progress.
#include <csignal>
#include <gtest/gtest.h>

#include "tests/processes/process_fixture.h"

namespace gradwire {
namespace {

class StatusProcess : public ProcessTest {
 protected:
  // Runs gradwire-server status and returns its exit code and its output.
  std::pair<int, std::string> status(const std::string& of, const std::vector<std::string>& more = {}) {
    const fs::path log = folder.path() / "status.log";
    fs::remove(log);
    std::vector<std::string> arguments = {"status", of};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Process show("gradwire-server", arguments, log);
    const int code = show.wait();
    return {code, show.log()};
  }
};

TEST_F(StatusProcess, WarnsOfAStalledRunUntilItsClientReturns) {
  write_config();
  Process server = start_server({"--set", "run.rounds=1000000", "--set", "server.deadline_ms=2000"});
  std::vector<Process> clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
  EXPECT_EQ(status("state").first, 0);
  clients[1].kill(SIGKILL);
  clients[1].wait();
  ASSERT_TRUE(eventually([&] { return status("state").first == 3; })) << server.log();
  const std::string text = status("state").second;
  EXPECT_TRUE(text.starts_with("warning: round ")) << text;
  for (const char* part :
       {" s for client 1 '", "' (lost at ", "; gives up in ", "clients     2 of 3 connected; missing: 1 '",
        " of 1000000 committed (", " %), waiting ", " s for '"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  EXPECT_EQ(text.find("rounds/s"), std::string::npos) << text;
  EXPECT_NE(server.log().find("warning: round "), std::string::npos) << server.log();
  EXPECT_EQ(status("state", {"--json"}).first, 3);
  EXPECT_NE(status("state", {"--json"}).second.find("\"stalled\": \"round "), std::string::npos);
  clients[1] = start_client(1, address);
  ASSERT_TRUE(eventually([&] { return status("state").first == 0; })) << server.log();
  const std::string good = status("state").second;
  EXPECT_NE(good.find(" rounds/s, "), std::string::npos) << good;
  EXPECT_NE(good.find(" left\n"), std::string::npos) << good;
}

TEST_F(StatusProcess, NamesALostClientAtOnceAndNoneBeforeTheStartOrAfterTheEnd) {
  write_config();
  Process server = start_server({"--set", "run.rounds=1000000", "--set", "server.deadline_ms=60000"});
  ASSERT_TRUE(eventually([&] { return fs::exists(state() / "metrics.prom"); })) << server.log();
  EXPECT_TRUE(eventually([&] {
    return status("state").second.find("clients     0 of 3 connected\n") != std::string::npos;
  })) << status("state").second;
  std::vector<Process> clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
  clients[1].kill(SIGKILL);
  clients[1].wait();
  // Long before the round counts as stalled.
  EXPECT_TRUE(eventually([&] {
    const auto [code, text] = status("state");
    return code == 0 && text.find(" %), waiting ") != std::string::npos;
  })) << status("state").second;
  server.kill(SIGTERM);
  EXPECT_EQ(server.wait(4), 0) << server.log();
  EXPECT_NE(server.log().find(": clients 1 are not connected; stopping without them"), std::string::npos)
      << server.log();
  const std::size_t done = lines_of(read_file(state() / "metrics.csv")).size();
  EXPECT_GT(done, 2u);
  clients[1] = start_client(1, address);
  const std::string rounds =
      std::to_string(std::stoul(lines_of(read_file(state() / "metrics.csv")).back()) + 10);
  server = restart_server({"--set", "run.rounds=" + rounds, "--set", "server.deadline_ms=60000"});
  expect_all_end_well(server, clients);
  const std::string over = status("state").second;
  EXPECT_NE(over.find("clients     0 of 3 connected\n"), std::string::npos) << over;
}

TEST_F(StatusProcess, ShowsARelayAndWarnsWithoutItsServer) {
  write_config();
  Process server = start_server({"--set", "run.rounds=1000000"});
  Process relay("gradwire-server",
                {"relay", "--upstream", address, "--listen", "127.0.0.1:0", "--state", "site"},
                folder.path() / "relay.log");
  ASSERT_TRUE(eventually([&] {
    return fs::exists(folder.path() / "site/metrics.prom") && status("site").first == 0;
  })) << relay.log();
  const std::string text = status("site").second;
  EXPECT_TRUE(text.starts_with("relay       process ")) << text;
  EXPECT_NE(text.find("server      connected\nclients     0 connected\n"), std::string::npos) << text;
  server.kill(SIGKILL);
  server.wait();
  ASSERT_TRUE(eventually([&] { return status("site").first == 3; })) << relay.log();
  EXPECT_TRUE(status("site").second.starts_with("warning: this relay has no connection to its server"))
      << status("site").second;
  relay.kill(SIGTERM);
  relay.wait();
  const auto [code, ended] = status("site");
  EXPECT_EQ(code, 0) << ended;
  EXPECT_TRUE(ended.starts_with("relay       not running\n")) << ended;
}

}  // namespace
}  // namespace gradwire
