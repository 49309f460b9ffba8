// Tests of problem.normalize for clients with files of their own: the model is that of a simulation of the
// same samples, bit for bit.
#include <csignal>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "report/preprocessing_file.h"
#include "tests/processes/process_fixture.h"
#include "tests/processes/saved_metadata.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

class NormalizeProcess : public ProcessTest {
 protected:
  NormalizeProcess() {
    std::string all;
    for (std::uint32_t k = 0; k < kClients; ++k) {
      const std::string own = rows_of_client(k);
      folder.write("own" + std::to_string(k) + ".txt", own);
      all += own;
    }
    folder.write("all.txt", all);
  }
  // 20 rows. Feature 1 is dense, 2 is sparse, 3 is constant, only client 1 has feature 4, and only client 2
  // has the last one. No feature has values that are exact in binary.
  static std::string rows_of_client(std::uint32_t k) {
    std::string text;
    for (std::uint32_t j = 0; j < 20; ++j) {
      text += j % 2 == 0 ? "-1" : "1";
      text += " 1:" + std::to_string(1000.1 + 7.3 * j * (k + 1));
      if (j == 5) text += " 2:" + std::to_string(0.3 * (j + 1));
      text += " 3:0.1";
      if (k == 1) text += " 4:" + std::to_string(0.7 - 0.09 * j);
      if (k == 2 && j > 3) text += " 5:" + std::to_string(1e5 / (j + 0.3));
      text += "\n";
    }
    return text;
  }
  void write_normalized(const std::string& kind, int rounds, const std::string& more = "") {
    write_config(
        "name = \"normalized\"\n[problem]\nkind = \"logistic\"\ndata = \"libsvm:" +
        (folder.path() / "all.txt").string() + "\"\nnormalize = \"" + kind +
        "\"\nregularizer = \"l2\"\nlambda = 0.01\n[clients]\ncount = 3\nweights = \"samples\"\n"
        "[algorithm]\nname = \"ef21\"\ncompressor = \"topk:k=2\"\nstep_size = 0.3\n[run]\nrounds = " +
        std::to_string(rounds) + "\nevaluate_every = 20\n[server]\ndeadline_ms = 60000\n" + more);
  }
  static std::string own(std::uint32_t k) { return "own" + std::to_string(k) + ".txt"; }
  Process start_own(std::uint32_t k, const std::string& where, const std::string& data) {
    const std::string name = "site-" + std::to_string(k);
    return Process("gradwire-client", {"--server", where, "--data", data, "--id", name},
                   folder.path() / (name + ".log"));
  }
  // Starts the client, and waits until it has sent its sums: so the clients are numbered in this order.
  Process start_and_wait(std::uint32_t k, const std::string& where, const std::string& data) {
    fs::remove(folder.path() / ("site-" + std::to_string(k) + ".log"));
    Process client = start_own(k, where, data);
    EXPECT_TRUE(eventually([&] { return sums_sent(client) > 0; })) << client.log();
    return client;
  }
  static std::size_t sums_sent(const Process& client) {
    const std::string log = client.log(), line = "sent the sums of its features";
    std::size_t found = 0;
    for (std::size_t at = log.find(line); at != log.npos; at = log.find(line, at + 1)) ++found;
    return found;
  }
  std::vector<Process> start_all(const std::string& where) {
    std::vector<Process> clients;
    for (std::uint32_t k = 0; k < kClients; ++k) clients.push_back(start_and_wait(k, where, own(k)));
    return clients;
  }
  // Expects the map of the simulation next to the model, and that the command evaluates the model with it.
  void expect_map_of_simulation() {
    const Prepared simulated = prepare(load_experiment(folder.path() / "run.toml"));
    const auto stored = preprocessing_in(state());
    ASSERT_TRUE(stored && stored->normalization);
    EXPECT_EQ(*stored->normalization, *simulated.preprocessing.normalization);
    const auto found =
        run_gradwire(folder.path(), {"evaluate", (state() / "model.bin").string(), "run.toml", "--json"});
    ASSERT_EQ(found.code, 0) << found.err;
    EXPECT_EQ(found.err.find("preprocessing"), std::string::npos) << found.err;
    const std::string row = lines_of(read_file(state() / "metrics.csv")).back();
    EXPECT_EQ(std::stod(found.out.substr(found.out.find(':') + 1)), std::stod(row.substr(row.find(',') + 1)))
        << found.out << row;
  }
};

TEST_F(NormalizeProcess, OwnFilesGiveTheBitsOfASimulation) {
  for (const std::string kind : {"standard", "minmax"}) {
    SCOPED_TRACE(kind);
    fs::remove_all(state());
    write_normalized(kind, 100);
    Process server = start_server();
    std::vector<Process> clients = start_all(address);
    expect_all_end_well(server, clients);
    expect_same_as_simulated();
    expect_map_of_simulation();
    EXPECT_NE(server.log().find("1 of 5 features are zero in more than nine of ten samples"),
              std::string::npos)
        << server.log();
  }
}

TEST_F(NormalizeProcess, TextsOfOwnTablesGiveTheBitsOfASimulation) {
  const std::string header = "age;region;paid\n";
  const std::vector<std::string> rows = {"31,5;west;no\n40;west;no\n22;north;no\n35,25;west;no\n",
                                         "51;south;yes\n18;west;no\n77;south;yes\n29,5;north;no\n",
                                         "44;north;yes\n61;north;no\n39;south;yes\n23,75;west;yes\n"};
  std::string all = header;
  for (std::uint32_t k = 0; k < kClients; ++k) {
    folder.write("own" + std::to_string(k) + ".csv", header + rows[k]);
    all += rows[k];
  }
  folder.write("all.csv", all);
  // The server needs no problem.data.
  write_config(
      "name = \"texts\"\n[problem]\nkind = \"logistic\"\nnormalize = \"standard\"\nlabel = \"paid\"\nlabels "
      "= "
      "\"yes, no\"\ncategories = \"region: west|east|north|south\"\nbias = true\n[clients]\ncount = "
      "3\n[algorithm]\nname = \"gd\"\nstep_size = 0.3\n[run]\nrounds = 50\nevaluate_every = 10\n");
  Process server = start_server();
  std::vector<Process> clients;
  for (std::uint32_t k = 0; k < kClients; ++k)
    clients.push_back(start_and_wait(k, address, "own" + std::to_string(k) + ".csv"));
  expect_all_end_well(server, clients);
  expect_same_as_simulated({"problem.data=csv:" + (folder.path() / "all.csv").string()});
  EXPECT_NE(server.log().find("not all clients have all labels (2: -1, 1): site-0 lacks -1;"),
            std::string::npos)
      << server.log();
  folder.write("new.csv", "age;region\n20;west\n70;south\n");
  const auto predicted = run_gradwire(folder.path(), {"predict", state().string(), "--data", "new.csv"});
  EXPECT_NE(predicted.out.find("\n1,no,"), std::string::npos) << predicted.out << predicted.err;
  EXPECT_NE(predicted.out.find("\n2,yes,"), std::string::npos) << predicted.out;
  const auto found = run_gradwire(folder.path(), {"evaluate", state().string(), "--data", "all.csv"});
  EXPECT_NE(found.out.find("accuracy "), std::string::npos) << found.out << found.err;
  const auto nothing = run_gradwire(folder.path(), {"evaluate", state().string()});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_NE(nothing.err.find("names no data; name them with --data FILE"), std::string::npos) << nothing.err;
}

TEST_F(NormalizeProcess, PartsAndOwnFilesMayBeMixed) {
  write_normalized("standard", 60);
  Process server = start_server();
  std::vector<Process> clients;
  clients.push_back(start_and_wait(0, address, own(0)));
  clients.push_back(start_and_wait(1, address, "all.txt#1/3"));
  clients.push_back(start_and_wait(2, address, own(2)));
  expect_all_end_well(server, clients);
  expect_same_as_simulated();
}

TEST_F(NormalizeProcess, RelaysPassSumsOfManyFeaturesOn) {
  write_normalized("minmax", 60);
  std::string all;
  for (std::uint32_t k = 0; k < kClients; ++k) {  // more features than fit into one message
    std::string own = k == 0 ? "1 1:5.5" : "-1 1:4";
    for (std::uint32_t j = 2; j < 5000 + k; ++j)
      own += " " + std::to_string(j) + ":" + std::to_string(0.1 * (j % 7 + k));
    own += "\n1 1:1\n";
    folder.write("own" + std::to_string(k) + ".txt", own);
    all += own;
  }
  folder.write("all.txt", all);
  Process server = start_server();
  Process relay("gradwire-server",
                {"relay", "--upstream", address, "--listen", "127.0.0.1:0", "--state", "site"},
                folder.path() / "site.log");
  ASSERT_TRUE(eventually([&] { return fs::exists(folder.path() / "site/address"); })) << relay.log();
  const std::string site = lines_of(read_file(folder.path() / "site/address")).at(0);
  std::vector<Process> clients;
  for (std::uint32_t k = 0; k < kClients; ++k)
    clients.push_back(start_and_wait(k, k == 1 ? address : site, own(k)));
  expect_all_end_well(server, clients);
  EXPECT_EQ(relay.wait(), 0) << relay.log();
  expect_same_as_simulated();
}

TEST_F(NormalizeProcess, ClientsReportTheConstantsOfNormalizedSamples) {
  write_normalized("standard", 20);
  const std::string theory = "algorithm.step_size=theory";
  Process server = start_server({"--set", theory});
  std::vector<Process> clients = start_all(address);
  expect_all_end_well(server, clients);
  // The features of the file are about 1000, so without the map L would be about 1e5.
  const std::string log = server.log(), before = "step sizes from theory: L = ";
  ASSERT_NE(log.find(before), std::string::npos) << log;
  EXPECT_LT(std::stod(log.substr(log.find(before) + before.size())), 10);
}

TEST_F(NormalizeProcess, TheRunSurvivesDeathsDuringTheHandshakeAndTheRounds) {
  write_normalized("standard", 4000);
  Process server = start_server();
  std::vector<Process> clients;
  clients.push_back(start_and_wait(0, address, own(0)));
  clients.push_back(start_and_wait(1, address, own(1)));
  // A client that has sent its sums dies, and comes back.
  clients[1].kill(SIGKILL);
  clients[1].wait();
  EXPECT_TRUE(eventually([&] {
    return server.log().find("'site-1' (") != std::string::npos &&
           server.log().find("disconnected") != std::string::npos;
  }));
  clients[1] = start_and_wait(1, address, own(1));
  clients.push_back(start_and_wait(2, address, own(2)));
  ASSERT_TRUE(eventually([&] { return records() > 2; })) << server.log();
  // The server dies in a round. It has the map in its state folder.
  server.kill(SIGKILL);
  server.wait();
  server = restart_server();
  ASSERT_TRUE(eventually([&, before = records()] { return records() > before; })) << server.log();
  clients[0].kill(SIGKILL);
  clients[0].wait();
  fs::remove(folder.path() / "site-0.log");
  clients[0] = start_own(0, address, own(0));
  expect_all_end_well(server, clients, 120);
  EXPECT_EQ(sums_sent(clients[0]), 0u) << "the server has the map";
  EXPECT_EQ(sums_sent(clients[2]), 1u);
  const std::atomic<bool> never = false;
  const Prepared prepared = prepare(load_experiment(folder.path() / "run.toml"));
  EXPECT_EQ(read_model(state() / "model.bin"), simulate(prepared, false, 1, {}, never).model);
  expect_map_of_simulation();
}

// Changes the folder of a stopped run to the form of an earlier release, which stored no map.
void forget_map(const fs::path& state) {
  change_saved_metadata(state, [](RunMetadata& metadata) {
    EXPECT_TRUE(metadata.normalization);
    metadata.normalization.reset();
  });
}

TEST_F(NormalizeProcess, RefusesAStateFolderWithoutAMapInOneLine) {
  write_normalized("standard", 1'000'000);
  Process server = start_server();
  std::vector<Process> clients = start_all(address);
  ASSERT_TRUE(eventually([&] { return records() > 2; })) << server.log();
  server.kill(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.log();
  forget_map(state());
  expect_refusal("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "state"}, 2,
                 "--state state: holds a run of an earlier release, without the map of problem.normalize = "
                 "\"standard\"");
  // A new run sets the old one aside, with its preprocessing.json.
  server = restart_server({"--fresh", "--set", "run.rounds=20"});
  expect_all_end_well(server, clients);
  EXPECT_TRUE(fs::exists(state() / "before/preprocessing.json"));
  EXPECT_TRUE(fs::exists(state() / "preprocessing.json"));
}

}  // namespace
}  // namespace gradwire
