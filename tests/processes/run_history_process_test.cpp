// Tests of a real server that is killed: its run history, its status, and its log as JSON.
#include <csignal>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "fl_server/run_history/sqlite.h"
#include "fl_server/status.h"
#include "report/json.h"
#include "tests/processes/process_fixture.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

bool is_json_object(const std::string& text) { return Json::parse(text, nullptr, false).is_object(); }

class RunHistoryProcessTest : public ProcessTest {
 protected:
  fs::path run_history() const { return state() / "registry.sqlite3"; }
  std::int64_t ask(const char* sql) const {
    Database db(run_history(), Database::Access::kRead, 1000);
    return db.number(sql);
  }
  bool has_rounds(std::int64_t count) const {
    return fs::exists(run_history()) && ask("SELECT count(*) FROM rounds") >= count;
  }
  // Returns the output of a program and its exit code.
  std::pair<std::string, int> said_by(const std::string& name, const std::vector<std::string>& arguments) {
    const fs::path log = folder.path() / "said.log";
    fs::remove(log);
    Process process(name, arguments, log);
    const int code = process.wait();
    return {process.log(), code};
  }
  void expect_json_lines(const std::string& text) {
    EXPECT_FALSE(text.empty());
    for (const std::string& line : lines_of(text)) EXPECT_TRUE(is_json_object(line)) << line;
  }
};

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

// A round takes about a millisecond, so two kills fit before the end. There are too few rounds for a second
// snapshot.
constexpr int kRounds = scaled(3000);
constexpr const char* kSamples = "problem.samples=6000";

TEST_F(RunHistoryProcessTest, HasEachRoundOnceAfterKillsOfTheServer) {
  write_config();
  const std::string all = std::to_string(kRounds);
  const std::vector<std::string> longer = {"--set", "run.rounds=" + all, "--set", kSamples,
                                           "--set", "problem.dim=100"};
  const auto count = [&](const std::string& rows) { return ask(("SELECT count(*) FROM " + rows).c_str()); };
  Process server = start_server(longer);
  std::vector<Process> clients = start_clients(address);
  for (const std::string joined : {"1", "2"}) {
    ASSERT_TRUE(eventually([&] {
      return has_rounds(20) && count("clients WHERE times_joined = " + joined) == kClients;
    })) << server.log();
    server.kill(SIGKILL);
    ASSERT_NE(server.wait(), 0) << "the run ended too soon";
    EXPECT_EQ(count("runs WHERE ended IS NULL AND rounds < " + all), 1);
    EXPECT_EQ(count("clients WHERE connected"), 3) << "as of the last write";
    server = restart_server(longer);
  }
  expect_all_end_well(server, clients);
  EXPECT_EQ(count("runs WHERE outcome = 'finished' AND clients = 3 AND rounds = " + all), 1);
  EXPECT_EQ(count("rounds WHERE replies = 3 AND round BETWEEN 1 AND " + all), kRounds);
  EXPECT_EQ(count("rounds"), kRounds + 1) << "row 0 has the first evaluation";
  EXPECT_EQ(count("clients WHERE times_joined = 3 AND replies_used = " + all), 3);
  EXPECT_EQ(count("clients WHERE connected OR samples = 0 OR peer NOT LIKE '127.%'"), 0);
  // The bytes are those of metrics.csv.
  const std::int64_t bytes = ask("SELECT bytes_up FROM rounds ORDER BY round DESC LIMIT 1");
  expect_says(lines_of(read_file(state() / "metrics.csv")).back(), "," + std::to_string(bytes) + ",");
}

TEST_F(RunHistoryProcessTest, ShowsThatAClientWasKilledAndReturned) {
  write_config();
  Process server = start_server({"--set", "run.rounds=1000000"});
  std::vector<Process> clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return has_rounds(50); })) << server.log();
  clients[1].kill(SIGKILL);
  ASSERT_TRUE(eventually([&] { return ask("SELECT times_lost FROM clients WHERE client = 1") == 1; }));
  std::string text = said_by("gradwire-server", {"status", "state"}).first;
  expect_says(text, "clients     2 of 3 connected; missing: 1 '");
  expect_says(text, "'\n            0 '");
  expect_says(text, "' not connected, lost 20");
  clients[1] = start_client(1, address);
  ASSERT_TRUE(eventually([&] { return ask("SELECT times_joined FROM clients WHERE client = 1") == 2; }));
  text = said_by("gradwire-server", {"status", "state"}).first;
  expect_says(text, "clients     3 of 3 connected\n            0 '");
  const auto [json, code] = said_by("gradwire-server", {"status", "state", "--json"});
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(is_json_object(json)) << json;
  expect_says(json, "\"stage\": \"rounds\"");
  expect_says(json, "\"address\": \"" + address + "\"");
  expect_says(json, "\"times_lost\": 1");
}

TEST_F(RunHistoryProcessTest, CountsLateReplies) {
  write_config();
  Process server = start_server(
      {"--set", "run.rounds=300", "--set", "run.evaluate_every=0", "--set", "server.quorum=0.3"});
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  const std::int64_t used = ask("SELECT sum(replies_used) FROM clients"),
                     late = ask("SELECT sum(replies_unused) FROM clients");
  EXPECT_EQ(used, 300) << "one of three replies ends a round";
  EXPECT_GT(late, 0);
  EXPECT_LE(late, 600);
}

// Another user, who may only read, asks for the status of a server that runs, was killed, or has ended.
TEST_F(RunHistoryProcessTest, ShowsTheStatusWithoutWritePermission) {
  constexpr int kNobody = 65534;
  write_config();
  const auto look = [&] {
    for (const auto& entry : fs::directory_iterator(state())) fs::permissions(entry, fs::perms(0444));
    fs::permissions(state(), fs::perms(0555));
    const fs::path out = folder.write("said.json", "");
    fs::permissions(out, fs::perms(0666));
    const pid_t child = ::fork();
    if (child == 0) {
      if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(3);
      try {
        std::ofstream(out) << status_json(state()).text;
      } catch (const std::exception& error) {
        std::ofstream(out) << error.what();
        ::_exit(2);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    const std::string text = read_file(out);
    EXPECT_EQ(status, 0) << text;
    EXPECT_TRUE(is_json_object(text)) << text;
    expect_says(text, "\"client\": 2");
    fs::permissions(state(), fs::perms(0755));
  };
  fs::permissions(folder.path(), fs::perms(0755));
  {
    Process server = start_server({"--set", "run.rounds=1000000"});
    std::vector<Process> clients = start_clients(address);
    ASSERT_TRUE(eventually([&] { return has_rounds(50); })) << server.log();
    look();
  }
  look();
  {
    Process server = restart_server({"--set", "run.rounds=1000000"});
    server.kill(SIGTERM);
    server.wait();
    EXPECT_FALSE(fs::exists(run_history().string() + "-wal"));
  }
  look();
}

TEST_F(RunHistoryProcessTest, KeepsTheBitsIfAnotherProgramLocksTheFile) {
  write_config();
  Process server = start_server();
  ASSERT_TRUE(eventually([&] { return fs::exists(run_history()) && ask("SELECT count(*) FROM runs") == 1; }));
  Database other(run_history(), Database::Access::kWrite, 1000);
  other.run("BEGIN IMMEDIATE");
  ASSERT_EQ(other.message(), "");
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  expect_same_as_simulated();
  const std::string log = server.log();
  const std::size_t first = log.find("registry.sqlite3: is locked by another program");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("registry", first + 30), std::string::npos) << log;
}

TEST_F(RunHistoryProcessTest, ReplacesADamagedFileAndKeepsTheBits) {
  write_config();
  folder.write("shared.sqlite3", "damaged, from the first byte to the last");
  Process server = start_server({"--registry", "shared.sqlite3"});
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  expect_same_as_simulated();
  expect_says(server.log(), "it is now shared.sqlite3.corrupt");
  EXPECT_FALSE(fs::exists(run_history()));
  const auto [text, code] = said_by("gradwire-server", {"status", "state", "--registry", "shared.sqlite3"});
  EXPECT_EQ(code, 0);
  expect_says(text, "clients     0 of 3 connected\n");
  expect_says(said_by("gradwire-server", {"status", "state"}).first, "clients     unknown: state/registry");
}

TEST_F(RunHistoryProcessTest, PrintsEveryLineAsJsonOnRequest) {
  write_config();
  Process server = start_server({"--json"});
  std::vector<Process> clients = start_clients(address);
  ASSERT_TRUE(eventually([&] { return records() > 20; })) << server.log();
  server.kill(SIGKILL);
  server.wait();
  server = restart_server({"--json"});
  expect_all_end_well(server, clients);
  expect_json_lines(server.log());
  expect_says(server.log(), "\"level\": \"info\", \"message\": \"the results are in state\"}");

  const std::vector<std::string> at = {"--listen", "127.0.0.1:0", "--state", "other", "--json"};
  const auto fails = [&](std::vector<std::string> arguments, int code, const std::string& message) {
    arguments.insert(arguments.end(), at.begin(), at.end());
    const auto [text, said] = said_by("gradwire-server", arguments);
    EXPECT_EQ(said, code) << text;
    expect_json_lines(text);
    expect_says(text, "\"level\": \"error\", \"message\": \"");
    expect_says(text, message);
  };
  fails({"no.toml"}, 2, "no.toml");
  fails({"run.toml", "--set", "algorithm.name=ef12"}, 2, "did you mean 'ef14'");
  fails({"run.toml", "--nonsense"}, 2, "--nonsense");
  fails({"run.toml", "--join-deadline-ms", "50"}, 1, "missing: 0, 1, 2");
  fails({"run.toml", "--set", "problem.data=\"\\\"quoted\\\"\""}, 2, "quoted");
  const auto [text, code] = said_by("gradwire-server", {"status", "nowhere", "--json"});
  EXPECT_EQ(code, 1);
  expect_json_lines(text);
}

TEST_F(RunHistoryProcessTest, EndsADivergedRunWithALineOfJson) {
  write_config();
  Process server = start_server({"--json", "--set", "algorithm.step_size=1e300"});
  std::vector<Process> clients = start_clients(address);
  EXPECT_EQ(server.wait(), 1);
  expect_json_lines(server.log());
  expect_says(server.log(),
              "\"level\": \"error\", \"message\": \"the run diverged; try a smaller algorithm.step_size\"}");
  EXPECT_EQ(ask("SELECT count(*) FROM runs WHERE outcome = 'diverged'"), 1);
}

}  // namespace
}  // namespace gradwire
