// Tests that relays that add up the replies of their site give the model of a flat federation up to rounding,
// with fewer bytes. The bits are equal if nothing is added, or if each site is a whole subtree of the tree
// sum.
#include <cmath>
#include <gtest/gtest.h>
#include <sstream>

#include "algorithms/core/tree_sum.h"
#include "tests/processes/site_fixture.h"

namespace gradwire {
namespace {

class RelayAggregateTest : public SiteTest {
 protected:
  RelayAggregateTest() { relays_add = true; }

  // Writes an experiment without replicas. Half of its deadline is long enough for a slow machine.
  void write_patient_config(const std::string& algorithm, int rounds, const std::string& precision = "fp64",
                            int dim = 11) {
    write_config("name = \"sites\"\nprecision = \"" + precision +
                 "\"\n[problem]\nkind = \"logistic\"\ndata = \"synthetic\"\nsamples = 60\ndim = " +
                 std::to_string(dim) + "\nregularizer = \"l2\"\nlambda = 0.01\n[clients]\ncount = " +
                 std::to_string(client_count) + "\n[algorithm]\n" + algorithm +
                 "[run]\nevaluate_every = 10\nrounds = " + std::to_string(rounds) +
                 "\n[server]\ndeadline_ms = 60000\nclient_state_replicas = false\n");
  }
  // Runs all clients at two relays until the end. The first `north_clients` use one of them.
  void run_two_sites(std::uint32_t north_clients = 2) {
    fs::remove_all(state());
    Process server = start_server();
    Process north = start_relay("north"), south = start_relay("south");
    std::vector<Process> clients;
    for (std::uint32_t part = 0; part < client_count; ++part)
      clients.push_back(start_client(part, address_of(part < north_clients ? "north" : "south")));
    expect_all_end_well(server, clients);
    EXPECT_EQ(north.wait(), 0) << north.log();
    EXPECT_EQ(south.wait(), 0) << south.log();
    relay_log = north.log();
  }
  struct Flat {
    std::vector<double> model;
    double bytes_up = 0;
    double grad_calls = 0;
  };
  Flat simulated(const std::vector<std::string>& overrides = {}) const {
    const Prepared prepared = prepare(load_experiment(folder.path() / "run.toml", overrides));
    const std::atomic<bool> never = false;
    Flat flat;
    RunObserver observer;
    observer.on_record = [&](const RoundRecord& record) {
      flat.bytes_up = static_cast<double>(record.bytes_up);
      flat.grad_calls = record.grad_calls;
    };
    flat.model = simulate(prepared, false, 1, observer, never).model;
    return flat;
  }
  // Returns a number in the last row of the metrics.
  double last(const std::string& column) const {
    const std::vector<std::string> lines = lines_of(read_file(state() / "metrics.csv"));
    std::istringstream names(lines.front()), values(lines.back());
    for (std::string name, value; std::getline(names, name, ',') && std::getline(values, value, ',');)
      if (name == column) return std::stod(value);
    ADD_FAILURE() << "no column " << column;
    return 0;
  }
  void expect_model_near(const std::vector<double>& other, double tolerance) const {
    const std::vector<double> model = read_model(state() / "model.bin");
    ASSERT_EQ(model.size(), other.size());
    double difference = 0, size = 0;
    for (std::size_t j = 0; j < model.size(); ++j) {
      difference = std::max(difference, std::abs(model[j] - other[j]));
      size = std::max(size, std::abs(other[j]));
    }
    EXPECT_LE(difference, tolerance * size);
  }

  std::string relay_log;
};

TEST_F(RelayAggregateTest, GivesTheModelOfAFlatFederationWithFewerBytes) {
  for (const std::string algorithm :
       {"name = \"gd\"\nstep_size = 0.3\n", "name = \"ef21\"\ncompressor = \"identity\"\nstep_size = 0.3\n",
        "name = \"diana\"\ncompressor = \"randk:k=8\"\nstep_size = 0.05\n"}) {
    write_patient_config(algorithm, 60);
    run_two_sites();
    EXPECT_NE(relay_log.find("replies are added up if the algorithm allows it"), std::string::npos);
    EXPECT_EQ(relay_log.find("accepts no sums"), std::string::npos) << relay_log;
    const Flat flat = simulated();
    expect_model_near(flat.model, 1e-12);
    EXPECT_LT(last("bytes_up"), 0.75 * flat.bytes_up) << algorithm;
    EXPECT_EQ(last("grad_calls"), flat.grad_calls);
    EXPECT_EQ(last("replies"), 4);
    const std::vector<double> model = read_model(state() / "model.bin");
    const double bytes = last("bytes_up");
    run_two_sites();
    EXPECT_EQ(read_model(state() / "model.bin"), model) << "the same bits again, " << algorithm;
    EXPECT_EQ(last("bytes_up"), bytes);
  }
}

TEST_F(RelayAggregateTest, GivesTheBitsOfAFlatFederationIfSitesAreWholeSubtrees) {
  client_count = kClientsOfLeaf + 3;
  for (const std::string algorithm :
       {"name = \"gd\"\nstep_size = 0.3\n", "name = \"ef21\"\ncompressor = \"natural\"\nstep_size = 0.3\n"}) {
    write_patient_config(algorithm, 30);
    run_two_sites(kClientsOfLeaf);
    const Flat flat = simulated();
    EXPECT_EQ(read_model(state() / "model.bin"), flat.model) << algorithm;
    EXPECT_LT(last("bytes_up"), 0.75 * flat.bytes_up) << "the server got sums, " << algorithm;
  }
}

TEST_F(RelayAggregateTest, AddsFp32ValuesInFp32) {
  write_patient_config("name = \"gd\"\nstep_size = 0.3\n", 60, "fp32");
  run_two_sites();
  const Flat flat = simulated();
  expect_model_near(flat.model, 1e-5);
  EXPECT_LT(last("bytes_up"), 0.75 * flat.bytes_up);
}

TEST_F(RelayAggregateTest, ForwardsSparseRepliesIfTheirSumWouldBeLonger) {
  write_patient_config("name = \"dcgd\"\ncompressor = \"randk:k=1\"\nstep_size = 0.02\n", 40, "fp64", 60);
  run_two_sites();
  expect_same_as_simulated();
}

TEST_F(RelayAggregateTest, ForwardsRepliesIfTheAlgorithmNeedsEach) {
  for (const std::string algorithm : {"name = \"ef21_plus\"\ncompressor = \"topk:k=2\"\nstep_size = 0.3\n",
                                      "name = \"cofig\"\ncompressor = \"randk:k=3\"\nstep_size = 0.05\n"}) {
    write_patient_config(algorithm, 40);
    run_two_sites();
    expect_same_as_simulated();
    EXPECT_NE(relay_log.find("the server accepts no sums"), std::string::npos) << relay_log;
  }
}

TEST_F(RelayAggregateTest, ForwardsRepliesIfTheServerKeepsReplicas) {
  write_config_of("name = \"ef21\"\ncompressor = \"identity\"\nstep_size = 0.3\n", 40);
  run_two_sites();
  expect_same_as_simulated();
  EXPECT_NE(relay_log.find("the server accepts no sums"), std::string::npos) << relay_log;
}

TEST_F(RelayAggregateTest, WaitsForAMissingClientForHalfOfTheDeadline) {
  write_config_of("name = \"gd\"\nstep_size = 0.3\n", 300, "quorum = 0.75\n");
  Process server = start_server({"--set", "run.evaluate_every=1"});
  Process relay = start_relay("site");
  std::vector<Process> clients = start_clients(address_of("site"));
  ASSERT_TRUE(eventually([&] { return records() > 2; }));
  clients[3].kill(SIGSTOP);
  EXPECT_TRUE(eventually([&, before = records()] { return records() > before + 2; })) << server.log();
  clients[3].kill(SIGCONT);
  expect_all_end_well(server, clients);
  EXPECT_EQ(relay.wait(), 0) << relay.log();
}

TEST_F(RelayAggregateTest, KillingRelaysServersAndClientsChangesNothingButLastBits) {
  clients_remember = true;
  write_config_of("name = \"ef21\"\ncompressor = \"identity\"\nstep_size = 0.3\n", kEndless,
                  "client_state_replicas = false\n");
  const std::string rounds = "run.rounds=" + std::to_string(run_with_kills(6));
  expect_model_near(simulated({rounds}).model, 1e-11);
}

TEST_F(RelayAggregateTest, IsAnOptionOfRelaysOnly) {
  expect_refusal("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "x", "--aggregate"}, 2,
                 "--aggregate is only for relays: gradwire-server relay --upstream HOST:PORT");
}

}  // namespace
}  // namespace gradwire
