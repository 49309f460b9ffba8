// run.monitor: the Lyapunov functions of the theorems, their bounds, and the messages about them.
#include <atomic>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "config/experiment_file.h"
#include "experiments/cli/run/monitor_plan.h"
#include "simulation/optimum/f_star.h"
#include "simulation/simulate.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

constexpr const char* kMonitored = R"(
name = "monitored"
[problem]
kind = "logistic"
data = "synthetic"
samples = 60
dim = 8
regularizer = "l2"
lambda = 0.02
[clients]
count = 5
[algorithm]
name = "gd"
[run]
rounds = 60
monitor = true
)";

using Sets = std::vector<std::string>;

struct Watched {
  std::vector<RoundRecord> rows;
  RunResult result;
  Prepared prepared;
};

Watched watch(const Sets& sets, bool encoded = false) {
  Watched run;
  run.prepared = prepare(parse_experiment(kMonitored, "monitored.toml", sets));
  Prepared p = run.prepared;
  p.monitor = monitor_plan(p);
  RunObserver observer;
  observer.on_record = [&](const RoundRecord& row) { run.rows.push_back(row); };
  const std::atomic<bool> stop{false};
  run.result = simulate(std::move(p), encoded, 1, observer, stop);
  return run;
}

std::string refused(const Sets& sets) {
  try {
    (void)monitor_plan(prepare(parse_experiment(kMonitored, "monitored.toml", sets)));
  } catch (const ConfigError& error) {
    return error.key() + ": " + error.what();
  }
  return "";
}

TEST(Monitor, ShowsTheGapOfGradientDescentAndItsTheorem) {
  const Watched run = watch({});
  const double f_star = find_f_star(run.prepared.experiment, ".").value();
  const double gamma = std::stod(run.prepared.experiment.algorithm.step_size),
               mu = run.prepared.smoothness->mu;
  ASSERT_EQ(run.rows.size(), 61u);
  for (const RoundRecord& row : run.rows) {
    EXPECT_NEAR(row.lyapunov.value(), row.loss - f_star, 1e-15);
    EXPECT_NEAR(row.lyapunov_bound.value(), std::pow(1 - gamma * mu, row.round) * (run.rows[0].loss - f_star),
                1e-14);
    EXPECT_LE(row.lyapunov.value(), row.lyapunov_bound.value() + 1e-15);
  }
  EXPECT_FALSE(run.result.crossed);
  EXPECT_TRUE(run.result.monitor.starts_with(
      "monitor: the Lyapunov function stayed below its bound in all 61 rows, at most at 0."))
      << run.result.monitor;
}

// Runs each algorithm with the step size of its theorem. The mean over seeds must be below the bound in every
// row, and not far below it at the start.
TEST(Monitor, HasAMeanOverSeedsBelowTheBoundOfEachTheorem) {
  const std::string randk = "algorithm.compressor=randk:k=3", nonconvex = "problem.regularizer=nonconvex";
  const std::vector<Sets> all = {
      {"algorithm.name=coded_gd", "clients.replication=2", "server.quorum=0.8"},
      {"algorithm.name=dcgd", randk},
      {"algorithm.name=diana", randk},
      {"algorithm.name=diana", randk, nonconvex},
      {"algorithm.name=marina", randk},
      {"algorithm.name=marina", randk, "algorithm.mu=theory"},
      {"algorithm.name=marina", randk, nonconvex},
      {"algorithm.name=marina", "algorithm.compressor=permk"},
      {"algorithm.name=vr_marina", randk, "algorithm.batch=3"},
      {"algorithm.name=pp_marina", randk, "algorithm.r=3"},
      {"algorithm.name=page", "algorithm.batch=6"},
      {"algorithm.name=ef21", "algorithm.compressor=topk:k=2"},
      {"algorithm.name=ef21", "algorithm.compressor=topk:k=2", "algorithm.mu=theory"},
      {"algorithm.name=ef21", "algorithm.compressor=randk:k=2,scaled=false", "algorithm.init=zero"},
      {"algorithm.name=ef21", "algorithm.compressor=topk:k=2", "algorithm.init=compressed", nonconvex},
  };
  constexpr int kSeedsOfMean = scaled(24);
  for (const Sets& sets : all) {
    std::string what;
    for (const std::string& set : sets) what += set + " ";
    SCOPED_TRACE(what);
    std::vector<double> mean(61), bound(61);
    for (int seed = 1; seed <= kSeedsOfMean; ++seed) {
      Sets own = sets;
      own.push_back("seed=" + std::to_string(seed));
      // Each seed has other data, so its values are divided by the first one.
      const Watched run = watch(own);
      double start = 0;
      for (const RoundRecord& row : run.rows) {
        if (!row.lyapunov) {
          EXPECT_EQ(row.round, 0u);
          continue;
        }
        if (start == 0) start = *row.lyapunov;
        mean[row.round] += *row.lyapunov / start / kSeedsOfMean;
        bound[row.round] += *row.lyapunov_bound / start / kSeedsOfMean;
      }
    }
    for (std::size_t k = 0; k <= 60; ++k) EXPECT_LE(mean[k], bound[k] * (1 + 1e-12)) << k;
    EXPECT_GT(mean[2], 0.1 * bound[2]) << "the bound is too loose to test anything";
    EXPECT_GT(mean[60], 0);
  }
}

// Without compression, g_i = ∇f_i. So the Lyapunov function is only the gap f − f*.
TEST(Monitor, ShowsZeroErrorsWithoutCompression) {
  for (const char* algorithm : {"marina", "ef21", "page"}) {
    const Watched run = watch({std::string("algorithm.name=") + algorithm, "algorithm.step_size=0.5"});
    const double f_star = find_f_star(run.prepared.experiment, ".").value();
    ASSERT_EQ(run.rows.size(), 61u);
    for (std::size_t k = 1; k <= 60; ++k)
      EXPECT_NEAR(run.rows[k].lyapunov.value(), run.rows[k - 1].loss - f_star, 1e-14)
          << algorithm << ", row " << k;
  }
}

// Computes EF21's G by its listing. A change in the samples of any client would change G.
TEST(Monitor, ShowsTheErrorsOfAllClientsOfEf21) {
  const Watched run = watch({"algorithm.name=ef21", "algorithm.compressor=topk:k=1", "algorithm.init=zero",
                             "run.rounds=1", "algorithm.step_size=0.5"});
  // After round 0 all g_i are still 0: Ψ^0 = f(x^0) − f* + γ/(2θ) mean ‖∇f_i(x^0)‖².
  const Prepared& p = run.prepared;
  const auto functions = make_client_objectives<double>(p.problem, p.schema, p.data);
  const auto oracle = functions->oracle();
  std::vector<double> x(8), g(8);
  double squares = 0;
  for (std::uint32_t i = 0; i < 5; ++i) {
    oracle->bind(i);
    oracle->loss_and_gradient(x, {}, g);
    for (const double v : g) squares += v * v / 5;
  }
  const double theta = 1 - std::sqrt(1 - 1.0 / 8);
  const double f_star = find_f_star(p.experiment, ".").value();
  ASSERT_EQ(run.rows.size(), 2u);
  EXPECT_NEAR(run.rows[1].lyapunov.value(), run.rows[0].loss - f_star + 0.5 / (2 * theta) * squares, 1e-13);
}

TEST(Monitor, ReportsARemedyIfALargerStepCrossesTheBound) {
  for (const char* kind : {"fp64", "fp32"}) {
    const Watched run = watch({"algorithm.step_size=theory*8", std::string("precision=") + kind});
    EXPECT_TRUE(run.result.crossed) << kind;
    EXPECT_TRUE(
        run.result.monitor.starts_with("monitor: the Lyapunov function crosses its bound first at t = "))
        << run.result.monitor;
    EXPECT_NE(run.result.monitor.find("is above the theorem's"), std::string::npos) << run.result.monitor;
  }
}

TEST(Monitor, ToleratesRounding) {
  for (const char* precision : {"fp64", "fp32"})
    for (const char* algorithm : {"gd", "ef21", "marina", "diana", "dcgd"}) {
      Sets sets = {std::string("algorithm.name=") + algorithm, std::string("precision=") + precision,
                   "run.rounds=3000", "run.evaluate_every=100", "problem.lambda=0.5"};
      if (algorithm == std::string("ef21") || algorithm == std::string("marina"))
        sets.push_back("algorithm.mu=theory");
      const Watched run = watch(sets);
      EXPECT_FALSE(run.result.crossed) << algorithm << ", " << precision << ": " << run.result.monitor;
      EXPECT_LT(run.rows.back().lyapunov_bound.value(), 1e-12 * run.rows[1].lyapunov_bound.value())
          << algorithm;
    }
}

TEST(Monitor, ChangesNoBitOfTheRun) {
  for (const Sets& sets : {Sets{}, Sets{"algorithm.name=diana", "algorithm.compressor=randk:k=2"},
                           Sets{"algorithm.name=ef21", "algorithm.compressor=topk:k=2"}}) {
    Sets off = sets;
    off.push_back("run.monitor=false");
    const std::atomic<bool> stop{false};
    const RunResult plain =
        simulate(prepare(parse_experiment(kMonitored, "monitored.toml", off)), false, 1, {}, stop);
    EXPECT_EQ(plain.monitor, "");
    EXPECT_EQ(plain.last.lyapunov, std::nullopt);
    for (const bool encoded : {false, true}) EXPECT_EQ(watch(sets, encoded).result.model, plain.model);
  }
}

TEST(Monitor, IsRejectedIfNoTheoremCoversTheRun) {
  const auto says = [](const Sets& sets, const std::string& what) {
    EXPECT_NE(refused(sets).find(what), std::string::npos) << refused(sets);
  };
  says({"algorithm.name=fedavg"},
       "no Lyapunov function of fedavg is known, only of gd, coded_gd, dcgd, diana");
  says({"algorithm.batch=3"}, "the theorem of gd is about full gradients");
  says({"clients.participation=0.5"}, "is about all clients in every round");
  says({"server.quorum=0.5"}, "is about replies of all clients");
  says({"algorithm.schedule=inverse"}, "the theorem is about constant step sizes");
  says({"run.evaluate_every=0"}, "evaluate_every is 0");
  says({"algorithm.name=dcgd", "problem.regularizer=none", "algorithm.compressor=randk:k=2"},
       "needs convex f_i and a strongly convex f");
  says({"algorithm.name=ef21", "algorithm.compressor=topk:k=2", "server.client_state_replicas=false"},
       "server.client_state_replicas: ");
  EXPECT_EQ(refused({}), "");
}

TEST(Monitor, WritesColumnsADashedLineAndALastLine) {
  const TemporaryFolder folder;
  const std::string file = folder.write("monitored.toml", kMonitored).string();
  const auto run = run_gradwire(folder.path(), {"run", file, "--out", "good"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE((run.out + run.err).find("stayed below its bound in all 61 rows"), std::string::npos) << run.err;
  EXPECT_NE(lines_of(read_file(folder.path() / "good/metrics.csv"))[0].find(",lyapunov,lyapunov_bound"),
            std::string::npos);
  EXPECT_NE(read_file(folder.path() / "good/plot.svg").find("stroke-dasharray=\"45 35\""), std::string::npos);
  const auto bad =
      run_gradwire(folder.path(), {"run", file, "--out", "bad", "--set", "algorithm.step_size=theory*8"});
  ASSERT_EQ(bad.code, 0) << bad.err;
  EXPECT_NE((bad.out + bad.err).find("crosses its bound first at t = "), std::string::npos) << bad.err;
  EXPECT_NE(read_file(folder.path() / "bad/summary.json").find("crosses its bound"), std::string::npos);
  const auto refuses = [&](std::vector<std::string> arguments, const std::string& what) {
    arguments.insert(arguments.begin(), {"run", file});
    const auto program = run_gradwire(folder.path(), arguments);
    EXPECT_EQ(program.code, 2);
    EXPECT_NE(program.err.find(what), std::string::npos) << program.err;
  };
  refuses({"--transport", "tcp"},
          "--transport tcp: run.monitor reads the data and the states of all clients");
  refuses({"--resume"}, "--resume: run.monitor");
  refuses({"--set", "algorithm.name=scaffold"}, "no Lyapunov function of scaffold is known");
}

TEST(Monitor, RejectsTheoremsAboutAMissingMinimum) {
  const TemporaryFolder folder;
  folder.write("q.toml",
               "[problem]\nkind = \"quadratic\"\ndim = 20\nlambda = 0\n[algorithm]\nname = \"ef21\"\n"
               "compressor = \"topk:k=2\"\n[run]\nrounds = 5\n");
  const auto watched = run_gradwire(folder.path(), {"run", "q.toml", "--set", "run.monitor=true"});
  EXPECT_EQ(watched.code, 2) << watched.err;
  EXPECT_NE(watched.err.find("this problem has no minimum"), std::string::npos) << watched.err;
  const auto plain = run_gradwire(folder.path(), {"run", "q.toml"});
  EXPECT_EQ(plain.code, 0);
  EXPECT_NE(plain.err.find("warning: problem.lambda = 0: f has no minimum"), std::string::npos) << plain.err;
  const auto bounded = run_gradwire(folder.path(), {"run", "q.toml", "--set", "problem.lambda=0.001"});
  EXPECT_EQ(bounded.err.find("warning"), std::string::npos) << bounded.err;
}

}  // namespace
}  // namespace gradwire
