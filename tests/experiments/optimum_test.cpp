// gradwire optimum, and the last line of a run.
#include "experiments/cli/run/optimum.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "config/experiment_file.h"
#include "engine/data/dataset.h"
#include "experiments/cli/support/fitting_algorithm.h"
#include "report/json.h"
#include "report/metrics_reader.h"
#include "simulation/optimum/f_star.h"
#include "simulation/prepare.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

constexpr const char* kQuadratic = R"(name = "q"
[problem]
kind = "quadratic"
dim = 40
heterogeneity = 0.1
lambda = 0.01
[clients]
count = 4
[algorithm]
name = "ef21"
compressor = "topk:k=4"
[run]
rounds = 60
evaluate_every = 5
)";
constexpr const char* kLogistic = R"(name = "l"
[problem]
kind = "logistic"
data = "synthetic"
samples = 60
dim = 6
regularizer = "l2"
lambda = 0.1
[clients]
count = 3
[algorithm]
name = "gd"
[run]
rounds = 30
evaluate_every = 10
)";

class OptimumCommand : public ::testing::Test {
 protected:
  OptimumCommand() {
    folder_.write("q.toml", kQuadratic);
    folder_.write("l.toml", kLogistic);
  }
  fs::path file(const char* name) const { return folder_.path() / name; }
  ProgramResult gradwire(const std::vector<std::string>& arguments) const {
    return run_gradwire(folder_.path(), arguments);
  }

  TemporaryFolder folder_;
  const ScopedEnvironment cache_{"XDG_CACHE_HOME", folder_.path().c_str()};
};

const FittedAlgorithm& step_of(const OptimumReport& report, const std::string& algorithm) {
  return *std::find_if(report.steps.begin(), report.steps.end(),
                       [&](const FittedAlgorithm& step) { return step.algorithm == algorithm; });
}

TEST_F(OptimumCommand, HasTheConstantsAndTheMinimumOfTheProblem) {
  for (const char* name : {"q.toml", "l.toml"}) {
    const OptimumReport report = report_optimum(file(name), {}, {});
    const LoadedExperiment loaded = load_experiment(file(name));
    const RunPlan plan = plan_with_constants(loaded);
    EXPECT_EQ(report.smoothness.L, plan.smoothness->L);
    EXPECT_EQ(report.smoothness.mu, plan.smoothness->mu);
    EXPECT_EQ(*report.condition(), report.smoothness.L / report.smoothness.mu);
    EXPECT_EQ(report.f_star, find_f_star(loaded.experiment, ".")) << name;
    EXPECT_LT(*report.grad_norm, 1e-12) << name;
    EXPECT_EQ(step_of(report, "gd").step_size, 1 / report.smoothness.L);
  }
}

// Each row must say the numbers that a run with this algorithm and compressor uses.
TEST_F(OptimumCommand, HasTheStepThatARunOfEachAlgorithmUses) {
  for (const char* name : {"q.toml", "l.toml"}) {
    const OptimumReport report = report_optimum(file(name), {}, {});
    EXPECT_EQ(report.steps.size(), all_algorithms().size());
    for (const FittedAlgorithm& step : report.steps) {
      ASSERT_EQ(step.trouble, "") << step.algorithm;
      std::vector<std::string> sets = {"algorithm.name=" + step.algorithm,
                                       "algorithm.compressor=" + step.spec.compressor};
      if (step.by_theory) sets.push_back("algorithm.step_size=theory");
      const RunPlan plan = prepare(load_experiment(file(name), sets));
      const AlgorithmSpec used = algorithm_spec(plan.experiment);
      EXPECT_EQ(step.step_size, std::stod(used.step_size)) << step.algorithm;
      for (const auto& [key, value] : step.others)
        EXPECT_EQ(std::count(used.parameters.begin(), used.parameters.end(), std::pair(key, value)), 1)
            << step.algorithm << ' ' << key;
    }
  }
}

TEST_F(OptimumCommand, GivesEachAlgorithmACompressorThatItTakes) {
  const OptimumReport report = report_optimum(file("q.toml"), {}, {});
  EXPECT_EQ(step_of(report, "ef21").spec.compressor, "topk:k=4");
  EXPECT_EQ(step_of(report, "diana").spec.compressor, "randk:k=4");
  EXPECT_EQ(step_of(report, "gd").spec.compressor, "identity");
  EXPECT_EQ(step_of(report, "asgd").spec.compressor, "identity") << "its theorem covers no compressor";
  const auto chosen = [](const char* algorithm, const char* wished) {
    return fitting_compressor(find_algorithm(algorithm).traits, wished, 1000, 4);
  };
  EXPECT_EQ(chosen("diana", "topk:k=2%"), "randk:k=2%");
  EXPECT_EQ(chosen("ef21", "randk:k=5"), "topk:k=5");
  EXPECT_EQ(chosen("ef21", "randk:k=5,scaled=false"), "randk:k=5,scaled=false");
  EXPECT_EQ(chosen("ef21", "natural(randk:k=20)"), "topk:k=20");
  EXPECT_EQ(chosen("marina", "permk"), "permk");
  EXPECT_EQ(chosen("rennala", "permk"), "topk:k=250") << "permk needs the replies of a whole round";
  EXPECT_EQ(chosen("ef21", "identity"), "topk:k=1%");
  EXPECT_EQ(chosen("diana", "identity"), "randk:k=1%");
  EXPECT_EQ(chosen("diana", "sign"), "randk:k=1%");
}

TEST_F(OptimumCommand, KeepsTheParametersOfTheExperimentsAlgorithm) {
  const OptimumReport report = report_optimum(
      file("q.toml"), {"algorithm.name=marina", "algorithm.compressor=randk:k=4", "algorithm.p=0.5"}, {});
  const RunPlan plan = prepare(load_experiment(
      file("q.toml"), std::vector<std::string>{"algorithm.name=marina", "algorithm.compressor=randk:k=4",
                                               "algorithm.p=0.5", "algorithm.step_size=theory"}));
  EXPECT_EQ(step_of(report, "marina").step_size, std::stod(plan.experiment.algorithm.step_size));
  EXPECT_TRUE(step_of(report, "marina").others.empty());
}

TEST_F(OptimumCommand, SaysWhyAnAlgorithmOrFStarIsMissing) {
  const std::vector<std::string> sets = {"problem.regularizer=nonconvex"};
  const OptimumReport report = report_optimum(file("l.toml"), sets, {});
  EXPECT_FALSE(report.f_star);
  EXPECT_NE(optimum_text(report).find("unknown: f is not known to be convex"), std::string::npos);
  EXPECT_NE(step_of(report, "nesterov").trouble.find("not known to be strongly convex"), std::string::npos);
  EXPECT_NE(optimum_text(report).find("Not for this experiment:\n"), std::string::npos);
}

TEST_F(OptimumCommand, PrintsATableAndJson) {
  const ProgramResult text = gradwire({"optimum", "q.toml"});
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* word : {"f* ", "||grad f(x*)||", "L / mu", "L_i ", "ef21 ", "topk:k=4"})
    EXPECT_NE(text.out.find(word), std::string::npos) << text.out;
  const ProgramResult result = gradwire({"optimum", "l.toml", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const Json json = Json::parse(result.out);
  const OptimumReport report = report_optimum(file("l.toml"), {}, {});
  EXPECT_EQ(json["f_star"].get<double>(), *report.f_star);
  EXPECT_EQ(json["condition"].get<double>(), *report.condition());
  EXPECT_EQ(json["L_i_max"].get<double>(), report.smoothness.L_max());
  EXPECT_EQ(json["algorithms"].size(), report.steps.size());
  EXPECT_EQ(json["algorithms"][0]["step_size"].get<double>(), report.steps[0].step_size);
  EXPECT_EQ(gradwire({"optimum", "absent.toml"}).code, 2);
}

// ---- the last line of a run ----

std::string value_after(const std::string& line, const std::string& key) {
  const std::size_t at = line.find(key + " = ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + key.size() + 3;
  return line.substr(begin, line.find_first_of(",\n", begin) - begin);
}

TEST_F(OptimumCommand, LetsTheLastLineOfARunSayTheGapAndTheStep) {
  const std::string line = gradwire({"run", "q.toml"}).out;
  const double f_star = *find_f_star(load_experiment(file("q.toml")).experiment, ".");
  const double loss = read_metrics(folder_.path() / "results/q/metrics.csv").back().loss;
  EXPECT_NEAR(std::stod(value_after(line, "f - f*")) / (loss - f_star), 1, 1e-3) << line;
  EXPECT_NE(value_after(line, "step_size").find(" (theory)"), std::string::npos) << line;
  const auto step = [&](const char* value) {
    return value_after(gradwire({"run", "q.toml", "--out", "other", "--overwrite", "--set",
                                 std::string("algorithm.step_size=") + value})
                           .out,
                       "step_size");
  };
  EXPECT_EQ(step("0.25"), "0.25 (given)");
  EXPECT_NE(step("theory*2").find(" (theory*2)"), std::string::npos);
  const std::string fedavg = gradwire({"run", "q.toml", "--out", "fedavg", "--set", "algorithm.name=fedavg",
                                       "--set", "algorithm.compressor=identity"})
                                 .out;
  EXPECT_EQ(value_after(fedavg, ", step_size"), "1 (default)") << fedavg;
  EXPECT_NE(value_after(fedavg, "local_step_size").find(" (theory)"), std::string::npos) << fedavg;
}

TEST_F(OptimumCommand, LetsTheLastLineOfARunHaveFStarOnceItIsKnown) {
  EXPECT_EQ(value_after(gradwire({"run", "l.toml"}).out, "f - f*"), "");
  ASSERT_EQ(gradwire({"optimum", "l.toml"}).code, 0);
  EXPECT_NE(value_after(gradwire({"run", "l.toml"}).out, "f - f*"), "");
  EXPECT_EQ(
      value_after(gradwire({"run", "l.toml", "--out", "b", "--set", "evaluation.clients=0.4"}).out, "f - f*"),
      "")
      << "the loss is that of some clients";
}

TEST_F(OptimumCommand, LetsTheLastLineOfAnAsynchronousRunHaveSimulatedSeconds) {
  const std::string line = gradwire({"run", "q.toml", "--set", "algorithm.name=asgd", "--set",
                                     "algorithm.compressor=identity", "--out", "results/q"})
                               .out;
  const auto seconds = read_metrics(folder_.path() / "results/q/metrics.csv").back().sim_seconds;
  ASSERT_TRUE(seconds);
  EXPECT_NE(line.find(", " + rounded_text(*seconds, 4) + " simulated seconds\n"), std::string::npos) << line;
}

}  // namespace
}  // namespace gradwire
