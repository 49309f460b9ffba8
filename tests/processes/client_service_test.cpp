// A client under a service manager, and the energy that it reports.
#include "tests/processes/process_fixture.h"
#include "tests/support/notice_socket.h"

namespace gradwire {
namespace {

class ClientService : public ProcessTest {};

TEST_F(ClientService, TellsItsManagerHowItFares) {
  write_config();
  Process server = start_server();
  NoticeSocket manager((folder.path() / "notify").string());
  ::setenv("WATCHDOG_USEC", "20000", 1);
  std::vector<Process> clients;
  clients.push_back(start_client(0, address));
  EXPECT_TRUE(manager.hears("STATUS=joined as client 0 of 3")) << clients[0].log();
  EXPECT_EQ(manager.notices().at(0), "READY=1");
  EXPECT_TRUE(eventually([&] { return manager.count("WATCHDOG=1") > 3; }));
  ::unsetenv("NOTIFY_SOCKET");
  for (const std::uint32_t part : {1, 2}) clients.push_back(start_client(part, address));
  EXPECT_TRUE(manager.hears("STATUS=the run is over"));
  expect_all_end_well(server, clients);
}

// An error in the command line is reported before READY=1, so that the start of the service fails.
TEST_F(ClientService, IsNotReadyIfItsCommandLineIsWrong) {
  NoticeSocket manager((folder.path() / "notify").string());
  Process client("gradwire-client", {"--server", "nonsense"}, folder.path() / "client.log");
  EXPECT_EQ(client.wait(), 2);
  EXPECT_EQ(manager.count("READY=1"), 0u);
}

TEST_F(ClientService, ReportsEnergyOrWhyThereIsNone) {
  write_config(
      "[problem]\nkind = \"quadratic\"\ndim = 4\n[clients]\ncount = 1\n[algorithm]\nname = \"gd\"\n"
      "step_size = 0.1\n[run]\nrounds = 3\n");
  Process server = start_server();
  Process client("gradwire-client", {"--server", address, "--energy"}, folder.path() / "client.log");
  EXPECT_EQ(client.wait(), 0);
  const std::string log = client.log();
  const std::size_t line = log.find("energy of the machine during the run: ");
  ASSERT_NE(line, log.npos) << log;
  const std::string said = log.substr(line, log.find('\n', line) - line);
  EXPECT_TRUE(said.find(" J") != said.npos || said.find("run: null; cannot measure energy: ") != said.npos ||
              said.find("run: null; the energy of ") != said.npos)
      << said;
  EXPECT_EQ(server.wait(), 0);
}

}  // namespace
}  // namespace gradwire
