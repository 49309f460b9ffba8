// Checks of server.start_share.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/config/experiment_text.h"

namespace gradwire {
namespace {

const std::vector<std::string> kPartial = {"server.start_share=0.8", "server.quorum=0.5", "problem.dim=3",
                                           "clients.weights=equal", "algorithm.step_size=0.1"};

std::string error_with(std::vector<std::string> more) {
  std::vector<std::string> all = kPartial;
  all.insert(all.end(), more.begin(), more.end());
  return error_of(kGood, all);
}
void expect_error(const std::vector<std::string>& more, const std::string& part) {
  const std::string error = error_with(more);
  EXPECT_NE(error.find("server.start_share: "), std::string::npos) << error;
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST(StartShare, IsAcceptedIfNothingOfTheMissingClientsIsNeeded) { EXPECT_EQ(error_with({}), ""); }

TEST(StartShare, IsRefusedIfSomethingOfTheMissingClientsIsNeeded) {
  expect_error({"server.quorum=0.8"}, "so server.quorum must be below it, not 0.8");
  expect_error({"clients.weights=samples"}, "weights = \"samples\" needs the samples of all");
  expect_error({"algorithm.step_size=theory"}, "algorithm.step_size from theory needs constants of all");
  expect_error({"problem.dim=0"}, "the number of features follows from the data of all; give problem.dim");
  expect_error({"problem.normalize=standard"}, "problem.normalize needs sums over the data of all");
  expect_error({"algorithm.name=marina", "algorithm.compressor=randk:k=1", "server.quorum=1"},
               "marina needs the replies of all clients");
  const std::string network = error_of(
      "[problem]\nkind = \"mlp\"\nhidden = [3]\ndata = \"digits\"\n[clients]\nweights = "
      "\"equal\"\n[algorithm]\n"
      "name = \"gd\"\nstep_size = 0.1\n[server]\nquorum = 0.5\nstart_share = 0.8\n");
  EXPECT_NE(network.find("the classes or letters of kind 'mlp' follow from the data of all"),
            std::string::npos)
      << network;
}

}  // namespace
}  // namespace gradwire
