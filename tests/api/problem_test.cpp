// Problem: the library's own functions in a program, and the constants of a program's functions.
#include "gradwire/problem.h"

#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gradwire/train.h"
#include "tests/api/api_support.h"
#include "tests/api/distances.h"

namespace gradwire {
namespace {

Experiment logistic_experiment(const std::string& more = "") {
  return Experiment::parse(
      "[problem]\nkind = \"logistic\"\ndata = \"synthetic\"\nsamples = 90\ndim = 13\nregularizer = \"l2\"\n"
      "lambda = 0.1\ntest_share = 0.2\n[clients]\ncount = 4\n" +
      more);
}
const char* const kRunOfProblem =
    "\n[algorithm]\nname = \"ef21\"\ncompressor = \"topk:k=2\"\nstep_size = 0.25\n[run]\nrounds = 30\n";

template <class Real>
std::vector<std::unique_ptr<Oracle<Real>>> oracles_of(const Problem& problem) {
  std::vector<std::unique_ptr<Oracle<Real>>> oracles;
  for (std::uint32_t i = 0; i < problem.clients(); ++i) oracles.push_back(problem.oracle<Real>(i));
  return oracles;
}

template <class Real>
void expect_same_run(const Experiment& experiment) {
  const TrainResult of_kind = train(experiment);
  const Problem problem(experiment);
  TrainKeys keys = {.algorithm = "ef21", .compressor = "topk:k=2", .step_size = 0.25, .rounds = 30};
  for (const unsigned threads : {1u, 3u}) {
    const TrainResult of_oracles = train(oracles_of<Real>(problem), keys, {.threads = threads});
    EXPECT_EQ(model_of(of_oracles), model_of(of_kind));
    for (const char* column :
         {"loss", "grad_norm_sq", "accuracy", "bits_up", "bytes_up", "bytes_down", "grad_calls"})
      EXPECT_EQ(of_oracles.metrics(column), of_kind.metrics(column)) << column;
  }
}

TEST(Problem, GivesTheBitsOfItsKindInBothPrecisions) {
  expect_same_run<double>(logistic_experiment(kRunOfProblem));
  expect_same_run<float>(logistic_experiment(kRunOfProblem).with("precision", "fp32"));
}

TEST(Problem, HasTheConstantsAndTheMinimumOfGradwireOptimum) {
  const Experiment experiment = logistic_experiment("\n[algorithm]\nname = \"gd\"\nstep_size = \"theory\"\n");
  const Problem problem(experiment);
  const ProblemConstants constants = problem.constants();
  EXPECT_FALSE(constants.estimated);
  EXPECT_EQ(constants.L_i.size(), 4u);
  EXPECT_GE(constants.mu, 0.1);
  EXPECT_EQ(std::stod(train(experiment.with("run.rounds", 1)).resolved().get("algorithm.step_size")),
            1 / constants.L);
  const TrainResult run = train(experiment.with("run.rounds", 2000));
  ASSERT_TRUE(problem.f_star());
  EXPECT_NEAR(run.rows().back().loss, *problem.f_star(), 1e-12);
  std::vector<double> gradient(problem.dim());
  EXPECT_NEAR(problem.loss_and_gradient(run.model(), gradient), *problem.f_star(), 1e-12);
  for (const double g : gradient) EXPECT_NEAR(g, 0, 1e-6);
  EXPECT_EQ(problem.start(), std::vector<double>(13));
  EXPECT_EQ(problem.weights(), std::vector<double>(4, 0.25));
}

TEST(Problem, ReadsTheSamplesOfTheProgram) {
  const Data data = Data::dense(1, {2, 1, 4, 1}, {1, 3, -2, 0.5});
  const Experiment experiment = Experiment::parse(
      "[problem]\nkind = \"least_squares\"\ndata = \"given\"\n[clients]\ncount = 4\npartition = "
      "\"contiguous\"\n[algorithm]\nname = "
      "\"gd\"\n");
  const Problem problem(experiment, data);
  std::vector<double> gradient(1);
  EXPECT_EQ(problem.oracle<double>(2)->loss_and_gradient(std::vector<double>{1}, {}, gradient), 18);
  EXPECT_EQ(gradient[0], 24);
  EXPECT_EQ(problem.constants().L_i, (std::vector<double>{4, 1, 16, 1}));
  // The minimum of ((2x-1)^2 + (x-3)^2 + (4x+2)^2 + (x-1/2)^2) / 8 is at -5/44.
  EXPECT_NEAR(*problem.f_star(), (14.25 - 22 * 25.0 / (44 * 44)) / 8, 1e-13);
}

TEST(Problem, RefusesWhatItCannotUse) {
  const Problem problem(logistic_experiment("\n[algorithm]\nname = \"gd\"\n"));
  EXPECT_THROW(problem.oracle<double>(4), std::out_of_range);
  std::vector<double> gradient(13);
  EXPECT_THROW(problem.loss_and_gradient(std::vector<double>(12), gradient), std::invalid_argument);
  EXPECT_NE(
      error_of([] {
        Problem(Experiment::from({{"problem.kind", "custom"}, {"problem.dim", 3}, {"algorithm.name", "gd"}}));
      }).find("'custom' needs a program"),
      std::string::npos);
}

TEST(Train, UsesTheSmoothnessThatTheProgramStates) {
  auto clients = distances<float>();  // L_i = 1, and estimates would need double
  const TrainResult result = train(clients, {.algorithm = "gd", .rounds = 1}, {.smoothness = {1, 1, 1, 5}});
  EXPECT_EQ(result.resolved().get("algorithm.step_size"), "0.5");
  EXPECT_TRUE(result.warnings().empty());
  EXPECT_NE(error_of([&] {
              train(clients, {.algorithm = "gd"}, {.smoothness = {1, 2}});
            }).find("has 2 numbers"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              train(clients, {.algorithm = "gd"}, {.smoothness = {1, 1, 0, 1}});
            }).find("client 2 is 0"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              train(logistic_experiment(kRunOfProblem), {.smoothness = {1, 1, 1, 1}});
            }).find("constants of its own"),
            std::string::npos);
}

struct WithHessian : Distance<double> {
  using Distance<double>::Distance;
  bool hessian(std::span<const double> x, std::span<double> upper) override {
    for (std::size_t a = 0, k = 0; a < x.size(); ++a)
      for (std::size_t b = a; b < x.size(); ++b, ++k) upper[k] = a == b;
    return true;
  }
};

TEST(Train, RunsFednlOnFunctionsWithHessians) {
  const TrainKeys keys = {.algorithm = "fednl", .compressor = "rankr:r=1", .rounds = 2};
  std::vector<WithHessian> clients = {WithHessian({1, 2, 3}), WithHessian({3, 4, 5})};
  const TrainResult result = train(clients, keys);
  EXPECT_EQ(model_of(result), (std::vector<double>{2, 3, 4}));  // a Newton step finds the minimum
  auto without = distances<double>();
  EXPECT_EQ(
      error_of([&] { train(without, keys); }),
      "algorithm.name: fednl needs Hessians, and the function of client 0 has none; implement hessian()");
}

}  // namespace
}  // namespace gradwire
