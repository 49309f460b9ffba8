// Tests of gradwire-server and gradwire-client as real processes: signals, bad networks, bad command lines.
#include <csignal>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "config/experiment_file.h"
#include "proto/wire/address.h"
#include "tests/processes/process_fixture.h"
#include "tests/processes/relay.h"

namespace gradwire {
namespace {

TEST_F(ProcessTest, GivesTheBitsOfTheSimulation) {
  write_config();
  Process server = start_server();
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  expect_same_as_simulated();
  const std::string summary = read_file(state() / "summary.json");
  EXPECT_NE(summary.find("\"outcome\": \"finished\""), std::string::npos) << summary;
  EXPECT_NE(summary.find(program("gradwire-server").string()), std::string::npos) << summary;
  EXPECT_EQ(load_experiment(state() / "config.toml").experiment.name, "processes");
}

TEST_F(ProcessTest, KeepsTheBitsWhenTheNetworkLosesConnections) {
  write_config();
  Process server = start_server({"--set", "run.rounds=60"});
  Relay relay(address, 6'000);
  std::vector<Process> clients = start_clients(relay.address());
  expect_all_end_well(server, clients);
  EXPECT_GT(relay.cuts(), 5);
  expect_model_as_simulated({"run.rounds=60"});
}

TEST_F(ProcessTest, RestoresTheStateOfAKilledClient) {
  write_config();
  Process server = start_server({"--set", "run.rounds=2000"});
  std::vector<Process> clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
  clients[1].kill(SIGKILL);
  EXPECT_EQ(clients[1].wait(), 128 + SIGKILL);
  clients[1] = start_client(1, address);
  expect_all_end_well(server, clients);
  EXPECT_NE(server.log().find("lost its state; sending it back"), std::string::npos) << server.log();
  LoadedExperiment loaded =
      parse_experiment(kConfig, "run.toml", std::vector<std::string>{"run.rounds=2000"});
  const std::atomic<bool> never = false;
  EXPECT_EQ(read_model(state() / "model.bin"), simulate(prepare(loaded), false, 1, {}, never).model);
}

TEST_F(ProcessTest, StopsAfterTheRoundAndResumesWithWaitingClients) {
  write_config();
  Process server = start_server({"--set", "run.rounds=2000"});
  std::vector<Process> clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
  server.kill(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.log();
  EXPECT_NE(read_file(state() / "summary.json").find("\"outcome\": \"stopped\""), std::string::npos);
  EXPECT_EQ(read_model(state() / "model.bin").size(), 11u);
  EXPECT_NE(server.log().find("to resume, start it again with the same arguments"), std::string::npos);
  server = restart_server({"--set", "run.rounds=2000"});
  expect_all_end_well(server, clients);
  EXPECT_NE(server.log().find("the run resumes after round"), std::string::npos) << server.log();
  EXPECT_NE(clients[0].log().find("the run resumes when the server returns"), std::string::npos)
      << clients[0].log();
  expect_same_as_simulated({"run.rounds=2000"});
}

TEST_F(ProcessTest, FindsWaitingClientsAfterAStopBeforeTheRun) {
  write_config();
  Process server = start_server();
  std::vector<Process> clients;
  clients.push_back(start_client(0, address));
  ASSERT_TRUE(eventually([&] { return server.log().find("joined") != std::string::npos; })) << server.log();
  server.kill(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.log();
  ASSERT_TRUE(eventually([&] {
    return clients[0].log().find("stopped before the run began; trying again") != std::string::npos;
  })) << clients[0].log();
  server = restart_server();
  for (const std::uint32_t part : {1, 2}) clients.push_back(start_client(part, address));
  expect_all_end_well(server, clients);
  expect_same_as_simulated();
}

TEST_F(ProcessTest, DiscardsTheClientStateOfAnotherRun) {
  write_config();
  std::vector<Process> clients;
  {
    Process first = start_server({"--set", "run.rounds=1000000"});
    Relay relay(address, 0);
    clients = start_clients(address);
    ASSERT_TRUE(eventually([&] { return records() > 20; })) << first.log();
    first.kill(SIGKILL);
    first.wait();
  }
  fs::remove_all(state());
  const std::string port = address.substr(address.rfind(':'));
  Process second("gradwire-server", {"run.toml", "--listen", "127.0.0.1" + port, "--state", "state"},
                 folder.path() / "second.log");
  expect_all_end_well(second, clients);
  expect_same_as_simulated();
}

TEST_F(ProcessTest, EndsADivergedRunWithCode1AndShutsDownClients) {
  write_config(R"(
name = "diverges"
[problem]
kind = "quadratic"
dim = 10
[clients]
count = 3
[algorithm]
name = "gd"
step_size = 1e200
[run]
rounds = 100
)");
  Process server = start_server();
  std::vector<Process> clients;
  for (const std::string name : {"x", "y", "z"})
    clients.emplace_back("gradwire-client", std::vector<std::string>{"--server", address, "--id", name},
                         folder.path() / (name + ".log"));
  EXPECT_EQ(server.wait(), 1);
  EXPECT_NE(server.log().find("the run diverged; try a smaller algorithm.step_size"), std::string::npos)
      << server.log();
  for (Process& client : clients) EXPECT_EQ(client.wait(), 0) << client.log();
  EXPECT_NE(read_file(state() / "summary.json").find("\"outcome\": \"diverged\""), std::string::npos);
  server = Process("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "state"},
                   folder.path() / "again.log");
  EXPECT_EQ(server.wait(), 0) << "a supervisor must not restart it again: " << server.log();
}

TEST_F(ProcessTest, NamesTheNormLimitIfItEndsTheRun) {
  write_config();
  Process server = start_server({"--quiet", "--set", "server.norm_limit=0.0001"});
  std::vector<Process> clients = start_clients(address);
  EXPECT_EQ(server.wait(), 1);
  EXPECT_NE(server.log().find("rejected because of server.norm_limit; try a larger server.norm_limit"),
            std::string::npos)
      << server.log();
  EXPECT_EQ(lines_of(server.log()).size(), 1u) << server.log();
  for (Process& client : clients) EXPECT_EQ(client.wait(), 0) << client.log();
}

TEST_F(ProcessTest, ReportsALossAboveThatOfTheStart) {
  write_config();
  Process server = start_server({"--set", "problem.kind=least_squares", "--set", "algorithm.step_size=3",
                                 "--set", "algorithm.compressor=identity", "--set", "run.rounds=20"});
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  const std::string line = "the run ends with a loss of ";
  EXPECT_NE(server.log().find(line), std::string::npos) << server.log();
  EXPECT_NE(read_file(state() / "summary.json").find(line), std::string::npos);
}

TEST_F(ProcessTest, UsesTheMeanOfTheClientsConstantsAndReportsIt) {
  write_config();
  Process server = start_server({"--set", "algorithm.step_size=theory", "--set", "run.rounds=3"});
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  EXPECT_NE(server.log().find("is the mean of the clients' L_i"), std::string::npos) << server.log();
  const std::string summary = read_file(state() / "summary.json");
  EXPECT_NE(summary.find("\"L_exact\": false"), std::string::npos);
  for (const std::string key : {"\"L_s\": ", "\"L_sample_max\": "}) {
    const std::size_t at = summary.find(key);
    ASSERT_NE(at, std::string::npos) << key;
    EXPECT_GT(std::stod(summary.substr(at + key.size())), 0) << key;
  }
  EXPECT_GT(std::stod(load_experiment(state() / "config.toml").experiment.algorithm.step_size), 0);
}

TEST_F(ProcessTest, MergesFeaturesAndLabelsOfTheClientsOwnFiles) {
  write_config(R"(
name = "files"
[problem]
kind = "logistic"
data = "libsvm:none.txt"
[clients]
count = 2
[algorithm]
name = "gd"
step_size = 0.5
[run]
rounds = 5
)");
  std::ofstream(folder.path() / "a.txt") << "1 1:0.5 3:1\n1 2:1\n";
  std::ofstream(folder.path() / "b.txt") << "-1 1:-1\n-1 7:2\n";
  Process server = start_server();
  std::vector<Process> clients;
  for (const std::string name : {"a", "b"})
    clients.emplace_back("gradwire-client",
                         std::vector<std::string>{"--server", address, "--data", name + ".txt", "--id", name},
                         folder.path() / (name + ".log"));
  expect_all_end_well(server, clients);
  EXPECT_EQ(read_model(state() / "model.bin").size(), 7u);
}

TEST_F(ProcessTest, NeedsNoDataOptionForAProblemWithoutData) {
  write_config(R"(
name = "quadratic"
[problem]
kind = "quadratic"
dim = 10
heterogeneity = 1.0
[clients]
count = 3
[algorithm]
name = "diana"
compressor = "randk:k=2"
[run]
rounds = 5
x0 = "normal"
)");
  Process server = start_server();
  std::vector<Process> clients;
  for (const std::string name : {"x", "y", "z"})
    clients.emplace_back("gradwire-client", std::vector<std::string>{"--server", address, "--id", name},
                         folder.path() / (name + ".log"));
  expect_all_end_well(server, clients);
}

TEST_F(ProcessTest, ReportsBadDataOfAClientToServerAndUser) {
  write_config();
  Process server = start_server();
  Process client = start_client(2, address, "libsvm:nowhere.txt");
  EXPECT_EQ(client.wait(), 2);
  EXPECT_NE(client.log().find("nowhere.txt' not found"), std::string::npos) << client.log();
  EXPECT_TRUE(eventually([&] {
    return server.log().find("its message: its data cannot be used") != std::string::npos;
  })) << server.log();
  EXPECT_EQ(server.log().find("nowhere"), std::string::npos) << server.log();
  Process other = start_client(2, address);
  EXPECT_TRUE(eventually([&] { return server.log().find("waiting for 2 more") != std::string::npos; }))
      << server.log();
}

// Replaces the outputs of this process by a pipe without a reader.
void stderr_has_no_reader() {
  int ends[2];
  if (::pipe(ends) != 0) ::_exit(126);
  ::close(ends[0]);
  ::dup2(ends[1], 1);
  ::dup2(ends[1], 2);
}
// Closes the standard streams of this process.
void stderr_is_closed() {
  for (const int fd : {0, 1, 2}) ::close(fd);
}

TEST_F(ProcessTest, RunsWithoutAReaderOfTheLog) {
  write_config();
  for (void (*trouble)() : {stderr_has_no_reader, stderr_is_closed}) {
    server_is_denied = trouble;
    Process server = start_server({"--json", "--no-resume"});
    std::vector<Process> clients;
    for (std::uint32_t part = 0; part < kClients; ++part) {
      const std::string data = "synthetic#" + std::to_string(part) + "/" + std::to_string(kClients);
      const std::string id = "site-" + std::to_string(part);
      clients.emplace_back(
          "gradwire-client",
          std::vector<std::string>{"--server", address, "--data", data, "--id", id, "--state", id},
          folder.path() / (id + ".log"), trouble);
    }
    expect_all_end_well(server, clients);
    expect_same_as_simulated();
    fs::remove_all(state());
  }
}

// Sends bytes that no client sends, on a new connection.
void say_nonsense(const std::string& address) {
  const auto parsed = parse_address(address, AddressUse::kToConnect);
  ASSERT_TRUE(parsed);
  const auto found = look_up(*parsed, AddressUse::kToConnect);
  ASSERT_TRUE(found);
  const int fd = ::socket((*found)->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  if (::connect(fd, (*found)->ai_addr, (*found)->ai_addrlen) == 0) {
    const std::string nonsense(64, 'x');
    (void)::send(fd, nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
    char answer;
    (void)::recv(fd, &answer, 1, 0);  // returns once the server has read the bytes
  }
  ::close(fd);
}

TEST_F(ProcessTest, LogsFewLinesDuringAFloodAndHidesNoClient) {
  write_config();
  Process server = start_server();
  constexpr int kBadConnections = 300;
  for (int k = 0; k < kBadConnections; ++k) say_nonsense(address);
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  const std::string log = server.log();
  EXPECT_LT(lines_of(log).size(), 60u) << log;
  for (const char* client : {"client 0 '", "client 1 '", "client 2 '"})
    EXPECT_NE(log.find(client), std::string::npos) << log;
}

TEST_F(ProcessTest, EndsAFatallyRejectedClientWithCode2) {
  write_config();
  Process server = start_server();
  expect_refusal("gradwire-client", {"--server", address, "--data", "synthetic#0/4", "--quiet"}, 2,
                 "the data is split into 4 parts, but the experiment has 3 clients");
  expect_refusal("gradwire-client",
                 {"--server", address, "--data", "synthetic#0/3", "--state", "/dev/null/x"}, 2,
                 "is not a folder and cannot be created");
}

TEST_F(ProcessTest, RejectsAnInvalidNameWithTheReason) {
  const auto refused = [&](const std::string& name, const std::string& why) {
    expect_refusal("gradwire-client", {"--server", "127.0.0.1:1", "--id", name}, 2, why);
  };
  refused("my site", "--id 'my site': it has a space; a name is one word");
  refused(std::string(65, 'x'), "it has 65 characters; a name is one word of at most 64 letters");
  refused("Z\xC3\xBCrich", "it has another character");
}

TEST_F(ProcessTest, EndsAClientWithoutAServerAfterItsTimeLimit) {
  Process client("gradwire-client", {"--server", "127.0.0.1:1", "--give-up-after-ms", "200"},
                 folder.path() / "alone.log");
  EXPECT_EQ(client.wait(), 1);
  EXPECT_NE(client.log().find("giving up after"), std::string::npos) << client.log();
}

TEST_F(ProcessTest, RejectsBadCommandLinesWithCode2AndOneLine) {
  write_config();
  const std::string client = "gradwire-client", server = "gradwire-server";
  expect_refusal(client, {"--server", "127.0.0.1:7000", "--data", "digits#20/20"}, 2,
                 "parts are numbered from 0");
  expect_refusal(client, {"--server", "nowhere"}, 2, "HOST:PORT");
  expect_refusal(client, {}, 2, "--server is required");
  expect_refusal(client, {"--server", "127.0.0.1:0"}, 2, "no server is at port 0");
  expect_refusal(client, {"--server", "127.0.0.1:1", "--give-up-after-ms", "1h"}, 2,
                 "'1h' is not a time: write a whole number of milliseconds");
  expect_refusal(
      server,
      {"run.toml", "--listen", "127.0.0.1:0", "--state", "s", "--join-deadline-ms", "9223372036854775807"}, 2,
      "is not a time: write a whole number of milliseconds, 1 to 315360000000 (ten years)");
  expect_refusal(server, {"none.toml"}, 2, "none.toml: no such file");
  expect_refusal(server, {"relay", "--upstream", "127.0.0.1:1"}, 2, "--listen is required");
  expect_refusal(server, {"none.toml", "--listen", "127.0.0.1:0", "--state", "s"}, 2,
                 "none.toml: no such file");
  expect_refusal(server, {"run.toml", "--listen", "7000", "--state", "s"}, 2, "HOST:PORT");
  expect_refusal(server, {"run.toml", "--listen", "127.0.0.1:0", "--state", "s", "--set", "run.rounds=-1"}, 2,
                 "--set run.rounds");
}

TEST_F(ProcessTest, RejectsAFolderOfAnotherRun) {
  write_config();
  fs::create_directory(state());
  std::string other = kConfig;
  other.replace(other.find("processes"), 9, "something");
  std::ofstream(state() / "config.toml") << other;
  expect_refusal("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "state"}, 2,
                 "holds results of 'something'");
  EXPECT_FALSE(fs::exists(state() / "address"));
}

TEST_F(ProcessTest, NamesTheMissingClientsAtTheJoinDeadline) {
  write_config();
  Process server = start_server({"--join-deadline-ms", "100"});
  EXPECT_EQ(server.wait(), 1);
  EXPECT_NE(server.log().find("only 0 of 3 clients have joined; missing: 0, 1, 2"), std::string::npos)
      << server.log();
}

}  // namespace
}  // namespace gradwire
