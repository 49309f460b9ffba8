// Tests of clients that return to a run with changed data.
#include <algorithm>
#include <csignal>
#include <functional>
#include <gtest/gtest.h>

#include "tests/processes/process_fixture.h"
#include "tests/processes/saved_metadata.h"

namespace gradwire {
namespace {

constexpr const char* kManyRounds = "run.rounds=100000000";

class ChangedDataTest : public ProcessTest {
 protected:
  ChangedDataTest() {
    set_problem("kind = \"logistic\"\ndata = \"csv:rows.csv\"\n");
    for (std::uint32_t k = 0; k < kClients; ++k) write(file_of(k), rows(k));
  }
  void set_problem(const std::string& lines) {
    std::string text = kConfig;
    const std::size_t begin = text.find("[problem]"), end = text.find("[clients]");
    text.replace(begin, end - begin, "[problem]\n" + lines);
    text.replace(text.find("deadline_ms = 500"), std::string("deadline_ms = 500").size(),
                 "deadline_ms = 60000");
    text.replace(text.find("partition"), text.find("weights") - text.find("partition"), "");
    write_config(text);
  }
  static std::string file_of(std::uint32_t k) { return "csv:rows" + std::to_string(k) + ".csv"; }
  // Returns the rows of client k. `more` is added to one number of the first row.
  static std::string rows(std::uint32_t k, double more = 0) {
    std::string text;
    for (int j = 0; j < 12; ++j)
      text += std::to_string((j + static_cast<int>(k)) % 5 + (j == 0 ? more : 0)) + "," +
              std::to_string(j % 3 + 0.5) + "," + (j % 2 == 0 ? "-1" : "1") + "\n";
    return text;
  }
  // Writes the file of a source KIND:NAME.
  void write(const std::string& source, const std::string& text) {
    std::ofstream(folder.path() / source.substr(source.find(':') + 1)) << text;
  }
  Process start(std::uint32_t k, const std::string& source) {
    const std::string own = "site-" + std::to_string(k);
    return Process("gradwire-client", {"--server", of_clients, "--data", source, "--id", own},
                   folder.path() / (own + ".log"));
  }
  void start_all(const std::function<std::string(std::uint32_t)>& source) {
    clients.clear();
    for (std::uint32_t k = 0; k < kClients; ++k) clients.push_back(start(k, source(k)));
  }
  void begin(const std::function<std::string(std::uint32_t)>& source) {
    server.emplace(start_server({"--set", kManyRounds}));
    of_clients = address;
    if (through_relay) {
      relay.emplace("gradwire-server",
                    std::vector<std::string>{"relay", "--upstream", address, "--listen", "127.0.0.1:0",
                                             "--state", "relay"},
                    folder.path() / "relay.log");
      ASSERT_TRUE(eventually([&] { return fs::exists(folder.path() / "relay" / "address"); }));
      std::ifstream(folder.path() / "relay" / "address") >> of_clients;
    }
    start_all(source);
    wait_for_rows();
  }
  void wait_for_rows() {
    const std::size_t before = records();
    ASSERT_TRUE(eventually([&] { return records() >= before + 3; })) << server->log();
  }
  static void kill(Process& process) {
    process.kill(SIGKILL);
    ASSERT_EQ(process.wait(), 128 + SIGKILL) << process.log();
  }
  void expect_refused(std::uint32_t k, const std::string& source) {
    const std::string line = "('site-" + std::to_string(k) +
                             "') returned with other data than before: restore its old data (--data), or "
                             "start the run from the beginning with --fresh at the server";
    const auto count = [&] {
      const std::string log = server->log();
      std::size_t found = 0;
      for (std::size_t at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) ++found;
      return found;
    };
    const std::size_t before = count();
    Process client = start(k, source);
    EXPECT_EQ(client.wait(), 2) << client.log();
    EXPECT_NE(client.log().find(line), std::string::npos) << client.log();
    EXPECT_TRUE(eventually([&] { return count() == before + 1; })) << server->log();
  }

  std::optional<Process> server, relay;
  std::vector<Process> clients;
  std::string of_clients;
  bool through_relay = false;
};

TEST_F(ChangedDataTest, RejectsOneChangedNumberAndAcceptsTheOldFileAgain) {
  begin(file_of);
  kill(clients[1]);
  write(file_of(1), rows(1, 0.25));
  expect_refused(1, file_of(1));
  write(file_of(1), rows(1));
  clients[1] = start(1, file_of(1));
  wait_for_rows();
}

TEST_F(ChangedDataTest, RejectsChangedDataThroughARelay) {
  through_relay = true;
  begin(file_of);
  kill(clients[2]);
  write(file_of(2), rows(2, 0.25));
  expect_refused(2, file_of(2));
  write(file_of(2), rows(2));
  clients[2] = start(2, file_of(2));
  wait_for_rows();
}

TEST_F(ChangedDataTest, RejectsChangedDataAfterAServerRestartButNotInANewRun) {
  begin(file_of);
  kill(*server);
  kill(clients[0]);
  write(file_of(0), rows(0, 0.25));
  server = restart_server({"--set", kManyRounds});
  expect_refused(0, file_of(0));
  kill(*server);
  for (Process* client : {&clients[1], &clients[2]}) kill(*client);
  server = restart_server({"--set", kManyRounds, "--no-resume"});
  start_all(file_of);
  wait_for_rows();
}

// Changes the folder of a stopped run to the form of an earlier release, which stored no hashes of data.
void forget_hashes(const fs::path& state) {
  change_saved_metadata(state, [](RunMetadata& metadata) {
    const ClientTable known = metadata.table;
    metadata.table = ClientTable(known.size());
    for (ClientId client = 0; client < known.size(); ++client) {
      ClientInfo info = known.info(client);
      EXPECT_TRUE(info.data_hash.has_value());
      info.data_hash.reset();
      EXPECT_TRUE(metadata.table.restore(client, info, known.by_part(client)));
    }
  });
}

TEST_F(ChangedDataTest, AcceptsAnUnknownHashOnceAndStoresIt) {
  begin(file_of);
  const auto stop = [&] {
    server->kill(SIGTERM);
    ASSERT_NE(server->wait(), -1) << server->log();
  };
  stop();
  forget_hashes(state());
  kill(clients[1]);
  write(file_of(1), rows(1, 0.25));
  server = restart_server({"--set", kManyRounds});
  clients[1] = start(1, file_of(1));
  wait_for_rows();
  stop();
  kill(clients[1]);
  server = restart_server({"--set", kManyRounds});
  write(file_of(1), rows(1));
  expect_refused(1, file_of(1));
}

// All clients share a file, and the server refuses only those whose own samples changed.
TEST_F(ChangedDataTest, ChecksOnlyTheShardOfTheClient) {
  const std::string all = rows(0) + rows(1) + rows(2);
  write("csv:all.csv", all);
  const auto share = [](std::uint32_t k) { return "csv:all.csv#" + std::to_string(k) + "/3"; };
  begin(share);
  write("csv:all.csv", rows(0) + rows(1, 0.25) + rows(2));
  kill(clients[1]);
  kill(clients[2]);
  expect_refused(1, share(1));
  clients[2] = start(2, share(2));
  write("csv:all.csv", all);
  clients[1] = start(1, share(1));
  wait_for_rows();
}

// A running client joins a new run without reading its file, and reads the file again when the run begins.
TEST_F(ChangedDataTest, EndsARunningClientIfItsFileChangedBetweenRuns) {
  begin(file_of);
  std::uint32_t first = 0;  // client 0 of both runs, so it sends the same Join twice
  const auto joined_first = [&](std::uint32_t k) {
    const std::vector<std::string> lines = lines_of(clients[k].log());
    return std::ranges::count_if(
        lines, [](const std::string& line) { return line.find("joined as client 0 ") != std::string::npos; });
  };
  while (joined_first(first) == 0) ++first;
  kill(*server);
  for (std::uint32_t k = 0; k < kClients; ++k)
    if (k != first) kill(clients[k]);
  write(file_of(first), rows(first, 0.25));
  server = restart_server({"--set", kManyRounds, "--no-resume"});
  ASSERT_TRUE(eventually([&] { return joined_first(first) == 2; })) << clients[first].log();
  for (std::uint32_t k = 0; k < kClients; ++k)
    if (k != first) clients[k] = start(k, file_of(k));
  EXPECT_EQ(clients[first].wait(), 2) << clients[first].log();
  EXPECT_NE(clients[first].log().find("the samples have changed since this client joined with them"),
            std::string::npos)
      << clients[first].log();
}

TEST_F(ChangedDataTest, RejectsAChangedLetter) {
  set_problem("kind = \"char_mlp\"\ndata = \"text:names.txt\"\ncontext = 3\n");
  const std::string names = "anna\nbert\ncarl\n";
  for (std::uint32_t k = 0; k < kClients; ++k) write("text:names" + std::to_string(k), names);
  const auto text = [](std::uint32_t k) { return "text:names" + std::to_string(k); };
  begin(text);
  kill(clients[1]);
  write(text(1), "anna\nbert\nclar\n");
  expect_refused(1, text(1));
}

TEST_F(ChangedDataTest, AcceptsSyntheticDataAgain) {
  write_config(kConfig);
  const auto drawn = [](std::uint32_t k) { return "synthetic#" + std::to_string(k) + "/3"; };
  begin(drawn);
  kill(clients[1]);
  clients[1] = start(1, drawn(1));
  wait_for_rows();
}

}  // namespace
}  // namespace gradwire
