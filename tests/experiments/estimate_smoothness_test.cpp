#include "engine/smoothness/estimate_smoothness.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/problems/problem.h"
#include "simulation/simulate.h"
#include "tests/engine/oracle_checks.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

ProblemSpec quadratics(std::uint32_t clients) {
  ProblemSpec spec;
  spec.problem = Quadratic{{.dim = 20, .lambda = 0.01, .heterogeneity = 0.8}};
  spec.clients = clients;
  return spec;
}

// Expects an estimate close to the exact constant. The power method approaches it from below, and the result
// is rounded up to two digits.
void expect_estimates(double estimate, double exact, const std::string& what) {
  EXPECT_LE(estimate, exact * 1.1) << what;
  EXPECT_GE(estimate, exact * 0.8) << what;
}

TEST(EstimateSmoothness, ComesNearToTheConstantsOfQuadratics) {
  const ProblemSpec spec = quadratics(5);
  const Smoothness exact = smoothness(spec, {}, {}, {});
  const Smoothness estimate =
      estimate_smoothness(*make_client_objectives<double>(spec, {}, {}), {}, model_start(spec, {}), 1);
  expect_estimates(estimate.L, exact.L, "L");
  ASSERT_EQ(estimate.L_i.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) expect_estimates(estimate.L_i[i], exact.L_i[i], std::to_string(i));
  expect_estimates(estimate.L_sample_max, exact.L_max(), "samples");
  EXPECT_TRUE(estimate.estimated);
  EXPECT_FALSE(estimate.exact || estimate.convex);
  EXPECT_EQ(estimate.mu, 0);
}

TEST(EstimateSmoothness, GivesClientsBeyondSixtyFourTheLargestEstimate) {
  const ProblemSpec spec = quadratics(100);
  const Smoothness exact = smoothness(spec, {}, {}, {});
  const Smoothness estimate =
      estimate_smoothness(*make_client_objectives<double>(spec, {}, {}), {}, model_start(spec, {}), 1);
  ASSERT_EQ(estimate.L_i.size(), 100u);
  const auto largest = std::count(estimate.L_i.begin(), estimate.L_i.end(), estimate.L_max());
  EXPECT_GE(largest, 36);
  EXPECT_LE(largest, 50) << "sixty-four have values of their own";
  EXPECT_LE(estimate.L_max(), exact.L_max() * 1.1);
  expect_estimates(estimate.L, exact.L, "L");
}

TEST(EstimateSmoothness, IsNearTheCurvatureAtZeroOfLogisticRegressionAndWithinItsBounds) {
  ProblemSpec spec;
  spec.problem = Logistic{};
  spec.clients = 3;
  const DataSchema schema{.columns = 7, .labels = {0, 1}};
  std::vector<ClientDataset> parts;
  for (std::size_t rows : {12, 400, 30}) parts.push_back({random_data(rows, 7, 0.6, {0, 1}, rows), {}});
  const std::vector<double> weights = {0.1, 0.7, 0.2};
  const Smoothness exact = smoothness(spec, schema, parts, weights);
  const Smoothness estimate = estimate_smoothness(*make_client_objectives<double>(spec, schema, parts),
                                                  weights, std::vector<double>(7), 1);
  expect_estimates(estimate.L, exact.L, "L");
  EXPECT_EQ(estimate.weights, weights);
  for (const std::size_t i : {0u, 2u}) expect_estimates(estimate.L_i[i], exact.L_i[i], std::to_string(i));
  EXPECT_GE(estimate.L_s, estimate.L_i[1] * std::sqrt(0.7) * 0.9);
  EXPECT_LE(estimate.L_s, exact.L_s * 1.5);
  EXPECT_LE(estimate.L_sample_max, exact.L_sample_max * 1.1);
}

TEST(EstimateSmoothness, RefusesGradientsThatAreNotFinite) {
  class Broken : public Oracle<double> {
   public:
    std::size_t dim() const override { return 2; }
    std::size_t sample_count() const override { return 1; }
    double loss_and_gradient(std::span<const double>, Batch, std::span<double> gradient) override {
      std::fill(gradient.begin(), gradient.end(), std::numeric_limits<double>::quiet_NaN());
      return 0;
    }
  };
  Broken broken;
  const OracleList<double> one({&broken}), no_clients(std::vector<Oracle<double>*>{});
  EXPECT_THROW(estimate_smoothness(one, {}, std::vector<double>(2), 1), DataError);
  EXPECT_THROW(estimate_smoothness(one, {}, std::vector<double>(3), 1), std::logic_error);
  EXPECT_THROW(estimate_smoothness(no_clients, {}, std::vector<double>(2), 1), std::logic_error);
}

std::string network(const std::string& algorithm) {
  return "name = \"net\"\n[problem]\nkind = \"mlp\"\ndata = \"digits\"\nhidden = [8]\ntest_share = 0.1\n"
         "[clients]\ncount = 4\n[algorithm]\n" +
         algorithm + "[run]\nrounds = 100\nevaluate_every = 100\n";
}

TEST(EstimatedStep, TrainsANetworkAndTheRunSaysThatItIsAnEstimate) {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("net.toml", network("name = \"ef21\"\ncompressor = \"topk:k=10%\"\n")).string();
  const auto run = run_gradwire(folder.path(), {"run", file, "--out", "memory"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE((run.out + run.err).find("warning: kind mlp has no closed-form constants: theory uses estimates"),
            std::string::npos)
      << run.out << run.err;
  const std::string summary = read_file(folder.path() / "memory" / "summary.json");
  EXPECT_NE(summary.find("\"L_estimated\": true"), std::string::npos);
  const auto tcp =
      run_gradwire(folder.path(), {"run", file, "--quiet", "--out", "tcp", "--transport", "tcp"});
  ASSERT_EQ(tcp.code, 0) << tcp.err;
  EXPECT_EQ(read_file(folder.path() / "memory" / "model.bin"),
            read_file(folder.path() / "tcp" / "model.bin"));
}

TEST(EstimatedStep, DoesNotDependOnTheStorageOfActivations) {
  const auto estimated = [](const std::string& kept) {
    const std::vector<std::string> set = {"problem.activation_dtype=" + kept};
    return prepare(parse_experiment(network("name = \"gd\"\n"), "net.toml", set)).smoothness.value();
  };
  const Smoothness exact = estimated("exact"), rounded = estimated("bfloat16");
  EXPECT_EQ(rounded.L, exact.L);
  EXPECT_EQ(rounded.L_i, exact.L_i);
  EXPECT_EQ(rounded.L_s, exact.L_s);
}

TEST(EstimatedStep, MakesProgressWithEveryAlgorithmWhoseTheoryAssumesNoConvexity) {
  for (const char* algorithm :
       {"name = \"gd\"\n", "name = \"marina\"\ncompressor = \"randk:k=10%\"\n",
        "name = \"page\"\nbatch = 20\n", "name = \"ef21\"\ncompressor = \"topk:k=5%\"\n"}) {
    SCOPED_TRACE(algorithm);
    const Prepared prepared = prepare(parse_experiment(network(algorithm), "net.toml"));
    ASSERT_TRUE(prepared.smoothness && prepared.smoothness->estimated);
    std::vector<double> loss;
    RunObserver observer;
    observer.on_record = [&](const RoundRecord& record) { loss.push_back(record.loss); };
    const std::atomic<bool> stop{false};
    simulate(prepared, false, 1, observer, stop);
    ASSERT_EQ(loss.size(), 2u);
    EXPECT_LT(loss[1], loss[0]);
  }
}

}  // namespace
}  // namespace gradwire
