// Tests of theory parameters at a server that is started by hand. It computes them from constants that
// clients report. If clients cannot report what a parameter needs, the server rejects it before any client
// joins.
#include <gtest/gtest.h>

#include "tests/processes/process_fixture.h"

namespace gradwire {
namespace {

std::string config_of(const std::string& problem, const std::string& algorithm) {
  return "name = \"by_hand\"\n[problem]\ndata = \"synthetic\"\nsamples = 60\ndim = 11\n" + problem +
         "[clients]\ncount = 3\n[algorithm]\n" + algorithm +
         "[run]\nrounds = 10\n[server]\ndeadline_ms = 2000\n";
}
constexpr const char* kRidge = "kind = \"logistic\"\nregularizer = \"l2\"\nlambda = 0.013\n";

class TheoryByHandTest : public ProcessTest {
 protected:
  void expect_run_as_simulated(const std::string& algorithm) {
    SCOPED_TRACE(algorithm);
    fs::remove_all(state());
    write_config(config_of(kRidge, algorithm));
    Process server = start_server();
    std::vector<Process> clients = start_clients(address);
    expect_all_end_well(server, clients);
    expect_same_as_simulated();
  }
  void expect_no_start(const std::string& problem, const std::string& algorithm, const std::string& message) {
    SCOPED_TRACE(algorithm);
    write_config(config_of(problem, algorithm));
    expect_refusal("gradwire-server", {"run.toml", "--listen", "127.0.0.1:0", "--state", "state"}, 2,
                   message);
    EXPECT_FALSE(fs::exists(state() / "address")) << "the server waited for clients";
  }
};

TEST_F(TheoryByHandTest, GivesTheParametersOfTheSimulationFromClientReports) {
  const std::string step = "step_size = 0.5\n";
  expect_run_as_simulated("name = \"fednl\"\noption = 1\ncompressor = \"topk:k=20\"\n");
  expect_run_as_simulated("name = \"nesterov\"\n" + step);
  expect_run_as_simulated("name = \"proxskip\"\n" + step);
  expect_run_as_simulated("name = \"adiana\"\ncompressor = \"randk:k=3\"\n" + step);
  expect_run_as_simulated("name = \"ef21_w\"\ncompressor = \"topk:k=3\"\n" + step);
}

TEST_F(TheoryByHandTest, RejectsUnreportableParametersBeforeClientsJoin) {
  const std::string convex = "kind = \"least_squares\"\n", network = "kind = \"mlp\"\nhidden = [4]\n";
  expect_no_start(convex, "name = \"nesterov\"\nstep_size = 0.5\n",
                  "algorithm.mu: theory needs strong convexity");
  expect_no_start(convex, "name = \"proxskip\"\n", "algorithm.p: theory needs strong convexity");
  expect_no_start(network, "name = \"gd\"\n", "algorithm.step_size: kind mlp has no closed-form");
  expect_no_start(network, "name = \"fedavg\"\n", "algorithm.local_step_size: kind mlp has no closed-form");
  expect_no_start(network, "name = \"ef21_w\"\ncompressor = \"topk:k=3\"\nstep_size = 0.5\n",
                  "algorithm.w: kind mlp has no closed-form");
}

TEST_F(TheoryByHandTest, NeedsNoConstantForATheoryStepWithoutOne) {
  write_config(config_of("kind = \"mlp\"\nhidden = [4]\n",
                         "name = \"fedavg\"\nstep_size = \"theory\"\nlocal_step_size = 0.1\n"));
  Process server = start_server();
  std::vector<Process> clients = start_clients(address);
  expect_all_end_well(server, clients);
  expect_same_as_simulated();
}

}  // namespace
}  // namespace gradwire
