// Tests of servers that start under unusual conditions: few descriptors, extreme numbers, invalid clients.
#include <csignal>
#include <gtest/gtest.h>

#include "tests/processes/process_fixture.h"
#include "tests/support/fake_client.h"

namespace gradwire {
namespace {

using StartTest = ProcessTest;

TEST_F(StartTest, ReportsMissingDescriptorsInOneLine) {
  write_config();
  void (*const denials[])() = {allow_descriptors<6>,  allow_descriptors<7>,  allow_descriptors<8>,
                               allow_descriptors<9>,  allow_descriptors<10>, allow_descriptors<11>,
                               allow_descriptors<12>, allow_descriptors<13>, allow_descriptors<14>};
  for (const auto deny : denials) {
    for (const bool relay : {false, true}) {
      std::vector<std::string> arguments = {"--listen", "127.0.0.1:0", "--state", "few"};
      if (relay) {
        arguments.insert(arguments.begin(),
                         {"relay", "--upstream", "127.0.0.1:1", "--give-up-after-ms", "1"});
      } else {
        arguments.insert(arguments.end(), {"run.toml", "--join-deadline-ms", "1"});
      }
      const fs::path log = folder.path() / "few.log";
      fs::remove(log);
      Process process("gradwire-server", arguments, log, deny);
      EXPECT_EQ(process.wait(), 1) << process.log();
      EXPECT_EQ(process.log().find("Bad file descriptor"), std::string::npos) << process.log();
      EXPECT_EQ(process.log().find("terminate"), std::string::npos) << process.log();
    }
  }
}

TEST_F(StartTest, NeedsOnlyTheExperiment) {
  write_config();
  Process help("gradwire-server", {"--help"}, folder.path() / "help.log");
  EXPECT_EQ(help.wait(), 0);
  const std::string text = help.log();
  const std::size_t listen = text.find("--listen HOST:PORT"), value = text.find("127.0.0.1:7000");
  EXPECT_TRUE(listen != text.npos && value < text.find('\n', listen)) << text;  // versions of CLI11 differ
  Process server("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0"}, folder.path() / "server.log");
  const fs::path where = folder.path() / "processes-state/address";
  ASSERT_TRUE(eventually([&] { return fs::exists(where); })) << server.log();
  std::ifstream(where) >> address;
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  EXPECT_TRUE(fs::exists(folder.path() / "processes-state/model.bin"));
}

TEST_F(StartTest, AcceptsADeadlineOfTenYears) {
  write_config();
  Process server = start_server({"--join-deadline-ms", "315360000000", "--set", "run.rounds=20"});
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
}

TEST_F(StartTest, RejectsOnlyTheClientWithAnInvalidDataReport) {
  write_config();
  Process server = start_server({"--set", "run.rounds=20"});
  {
    FakeClient unauthenticated(address, [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
    unauthenticated.send(FakeClient::hello_frame("outsider"));
    ASSERT_TRUE(unauthenticated.read_message());
    wire::Join join;
    join.set_columns(4'000'000'000);
    join.set_sample_count(10);
    join.set_test_count(0);
    join.add_labels(-1);
    join.add_labels(1);
    unauthenticated.send(control_frame(FrameType::kJoin, join));
    const auto refusal = unauthenticated.read_refusal();
    ASSERT_TRUE(refusal) << server.log();
    EXPECT_TRUE(refusal->fatal());
    EXPECT_NE(refusal->message().find("4000000000 columns"), std::string::npos) << refusal->message();
  }
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
}

}  // namespace
}  // namespace gradwire
