// Tests server.start_share: a run that begins before all of its clients have joined.
#include <csignal>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/processes/process_fixture.h"
#include "tests/support/fake_client.h"

namespace gradwire {
namespace {

class StartShareTest : public ProcessTest {
 protected:
  void write_experiment(int rounds) {
    std::ofstream(folder.path() / "x.svm") << "1 1:0.5 2:1\n-1 1:-1\n1 3:2\n-1 2:-1\n";
    std::ofstream(folder.path() / "one_label.svm") << "1 1:0.5\n1 3:2\n";
    std::ofstream(folder.path() / "others.svm") << "7 2:1\n8 1:-1\n";
    write_config(R"(
name = "share"
[problem]
kind = "logistic"
data = "libsvm:x.svm"
dim = 3
[clients]
count = 3
weights = "equal"
[algorithm]
name = "ef21"
compressor = "topk:k=1"
step_size = 0.1
[run]
evaluate_every = 10
rounds = )" + std::to_string(rounds) +
                 "\n[server]\nstart_share = 0.6\nquorum = 0.5\ndeadline_ms = 500\n");
  }
  std::vector<std::string> arguments_of(const std::string& name, const std::string& file = "x.svm") const {
    return {"--server", address, "--id", name, "--data", "libsvm:" + file};
  }
  Process client(const std::string& name, const std::string& file = "x.svm") {
    return Process("gradwire-client", arguments_of(name, file), folder.path() / (name + ".log"));
  }
  static bool said(const Process& server, const std::string& text) {
    return eventually([&] { return server.log().find(text) != std::string::npos; });
  }
  void expect_progress(const Process& server) {
    EXPECT_TRUE(eventually([&, before = last_record()] { return last_record() > before + 50; }))
        << server.log();
  }
};

TEST_F(StartShareTest, BeginsWithAShareAndALateClientKeepsItsNumber) {
  write_experiment(100'000'000);
  Process server = start_server(), a = client("a");
  EXPECT_TRUE(said(server, "waiting for 2 of 3 clients")) << server.log();
  EXPECT_TRUE(said(server, "client 0 'a'")) << server.log();
  Process b = client("b");
  expect_progress(server);
  EXPECT_TRUE(said(server, "not joined yet: 1 of 3 clients")) << server.log();
  {
    FakeClient ghost(address, [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
    ghost.send(FakeClient::hello_frame("ghost"));  // has a number until it leaves
    EXPECT_TRUE(ghost.read_message());
  }
  EXPECT_TRUE(said(server, "ghost")) << server.log();
  {
    Process others("gradwire-client", arguments_of("others", "others.svm"), folder.path() / "others.log");
    EXPECT_EQ(others.wait(), 2);
    EXPECT_NE(others.log().find("its labels are"), std::string::npos) << others.log();
  }
  std::optional<Process> late = client("late");
  EXPECT_TRUE(said(server, "client 2 'late'")) << server.log();
  expect_progress(server);
  server.kill(SIGKILL);
  server.wait();
  late->kill(SIGKILL);
  late->wait();
  server = restart_server();
  expect_refusal("gradwire-client", arguments_of("other"), 2, "all 3 places of the run are taken");
  late.emplace(client("late"));
  EXPECT_TRUE(said(server, "client 2 'late'")) << server.log();
  expect_progress(server);
  server.kill(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.log();
}

TEST_F(StartShareTest, WaitsForASecondLabelIfTheFirstClientsHaveOne) {
  write_experiment(100);
  Process server = start_server();
  std::vector<Process> clients;
  for (const char* name : {"a", "b"}) clients.push_back(client(name, "one_label.svm"));
  EXPECT_TRUE(said(server,
                   "waiting for one more client, because logistic regression needs exactly two "
                   "labels but the data has 1"))
      << server.log();
  clients.push_back(client("c"));
  expect_all_end_well(server, clients);
  EXPECT_EQ(last_record(), 100);
}

TEST_F(StartShareTest, SaysWhichLabelsAreMissingAtTheDeadlineOfTheJoins) {
  write_experiment(100);
  Process server = start_server({"--join-deadline-ms", "2000"});
  std::vector<Process> clients;
  for (const char* name : {"a", "b"}) clients.push_back(client(name, "one_label.svm"));
  EXPECT_NE(server.wait(), 0);
  EXPECT_NE(
      server.log().find("after 2000 ms logistic regression needs exactly two labels but the data has 1"),
      std::string::npos)
      << server.log();
  EXPECT_NE(server.log().find("clients that have not joined: 2; start them"), std::string::npos)
      << server.log();
  for (Process& joined : clients) {
    joined.kill(SIGKILL);
    joined.wait();
  }
}

TEST_F(StartShareTest, EndsWithoutAClientThatNeverJoined) {
  write_experiment(100);
  Process server = start_server();
  std::vector<Process> clients;
  for (const char* name : {"a", "b"}) clients.push_back(client(name));
  expect_all_end_well(server, clients);
  EXPECT_EQ(server.log().find("to confirm the shutdown"), std::string::npos) << server.log();
  EXPECT_EQ(last_record(), 100);
  Process again = restart_server();
  EXPECT_EQ(again.wait(), 0);
  EXPECT_NE(again.log().find("is over"), std::string::npos) << again.log();
  const std::string summary = read_file(state() / "summary.json");
  EXPECT_EQ(summary.find("client 2"), std::string::npos) << summary;
}

}  // namespace
}  // namespace gradwire
