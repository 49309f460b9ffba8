// Tests of docs/how-to/upgrade_and_back_up.md: a restored backup, a lost key of the authority, and the
// versions on that page.
#include <csignal>
#include <gtest/gtest.h>

#include "proto/wire/frame.h"
#include "tests/processes/identity_fixture.h"

namespace gradwire {
namespace {

class Upgrade : public IdentityProcess {
 protected:
  std::vector<Process> start_all(const std::string& tokens, const std::string& own) {
    std::vector<Process> clients;
    for (std::uint32_t part = 0; part < kClients; ++part) {
      const std::string file = tokens + "/client-" + std::to_string(part) + ".token";
      clients.push_back(start_known(part, address, "@" + file, own));
    }
    return clients;
  }
  void wait_for_more_rounds(const Process& server) {
    ASSERT_TRUE(eventually([&, before = records()] { return records() > before + 20; })) << server.log();
  }
  static void stop(Process& server) {
    server.kill(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << server.log();
  }
};

TEST_F(Upgrade, RestoresABackupWithoutTheAuthoritysKeyAndMovesToANewAuthority) {
  write_config();
  const std::vector<std::string> long_run = {"--set", "run.rounds=1000000"};
  const auto with = [&](const std::string& identity, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--identity", identity};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  const auto operate = [&](const std::vector<std::string>& arguments, int code) {
    const Ended ended = run("gradwire-server", arguments);
    EXPECT_EQ(ended.code, code) << ended.said;
    return ended.said;
  };
  operate({"init", "identity", "--clients", "3", "--out", "tokens", "--host", "127.0.0.1"}, 0);
  Process server = start_server(with("identity", long_run));
  std::vector<Process> clients = start_all("tokens", "me");
  wait_for_more_rounds(server);
  stop(server);
  fs::create_directory(folder.path() / "backup");
  for (const char* name : {"state", "identity"}) {
    fs::copy(folder.path() / name, folder.path() / "backup" / name, fs::copy_options::recursive);
    fs::remove_all(folder.path() / name);
    fs::copy(folder.path() / "backup" / name, folder.path() / name, fs::copy_options::recursive);
  }
  fs::remove(folder.path() / "identity/ca.key");
  server = restart_server(with("identity", long_run));
  wait_for_more_rounds(server);
  operate({"enroll", "late", "--identity", "identity"}, 0);
  EXPECT_NE(operate({"renew", "--identity", "identity"}, 1).find("ca.key"), std::string::npos);
  stop(server);
  for (Process& client : clients) client.kill(SIGKILL);

  operate({"init", "identity2", "--clients", "3", "--out", "tokens2", "--host", "127.0.0.1"}, 0);
  const std::string rounds =
      "run.rounds=" + std::to_string(std::stoi(lines_of(read_file(state() / "metrics.csv")).back()) + 200);
  server = restart_server(with("identity2", {"--set", rounds}));
  clients = start_all("tokens2", "new");
  expect_all_end_well(server, clients);
  expect_same_as_simulated({rounds});
}

TEST_F(Upgrade, HasTheVersionsOfThePage) {
  write_config();
  Process server = start_server();
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  std::string snapshot;
  for (const auto& entry : fs::directory_iterator(state()))
    if (entry.path().filename().string().starts_with("ckpt-")) snapshot = read_file(entry.path());
  ASSERT_GT(snapshot.size(), 8u);
  const std::string page = read_file(fs::path(GRADWIRE_SOURCE_DIR) / "docs/how-to/upgrade_and_back_up.md");
  for (const std::string& rule :
       {"the same version of the protocol: " + std::to_string(kWireVersion) + " in gradwire 0.2",
        "the same format of snapshots: " + snapshot.substr(7, 1) + " in gradwire 0.2"})
    EXPECT_NE(page.find(rule), std::string::npos) << rule;
}

}  // namespace
}  // namespace gradwire
