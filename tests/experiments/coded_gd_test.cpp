// Gradient coding in whole runs, on the virtual clock and over TCP.
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "algorithms/support/gradient_code.h"
#include "config/experiment_file.h"
#include "samples/local_problem.h"
#include "simulation/optimum/f_star.h"
#include "tests/experiments/trace.h"
#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

constexpr const char* kCoded = R"(
name = "coded"
[problem]
kind = "logistic"
data = "synthetic"
samples = 96
dim = 7
regularizer = "l2"
lambda = 0.05
[clients]
count = 8
replication = 2
[algorithm]
name = "coded_gd"
[run]
rounds = 25
)";

using Sets = std::vector<std::string>;

Prepared coded(const Sets& sets) { return prepare(parse_experiment(kCoded, "coded.toml", sets)); }

std::string coded_refusal(const Sets& sets) {
  try {
    (void)coded(sets);
  } catch (const ExperimentError& error) {
    return error.what();
  }
  return "";
}

// Returns the data shard of client i without replication.
std::unique_ptr<Oracle<double>> plain_part(const ExperimentSpec& experiment, std::uint32_t i) {
  ExperimentSpec plain = experiment;
  plain.clients.replication = 1;
  const ProblemSpec spec = problem_spec(plain);
  const SharedSamples samples = load_samples(plain, ".");
  return make_oracle<double>(spec, schema_of(samples, spec), samples.part(i), i);
}

// Client i takes i + 1 seconds, so that the last ones are always late.
TEST(CodedGd, MatchesPaperListing) {
  for (const Sets& how :
       {Sets{"clients.replication=3"}, Sets{"clients.replication=4", "clients.placement=groups"},
        Sets{"clients.replication=3", "algorithm.recovery=approximate"}}) {
    SCOPED_TRACE(how.back());
    Sets sets = how;
    sets.insert(sets.end(), {"server.quorum=0.75", "clients.latency=linear", "algorithm.step_size=0.4"});
    const Prepared p = coded(sets);
    const DataReplication replication{p.experiment.clients.replication, p.experiment.clients.placement};
    const GradientCode code(8, replication, how.back() != "algorithm.recovery=approximate", 1);
    const std::vector<ClientId> S{0, 1, 2, 3, 4, 5};
    const std::vector<double> a = code.weights(S);
    std::vector<std::unique_ptr<Oracle<double>>> f;
    for (std::uint32_t j = 0; j < 8; ++j) f.push_back(plain_part(p.experiment, j));
    std::vector<double> x(7), g(7), m(7), step(7);
    for (int t = 0; t < 25; ++t) {
      std::fill(step.begin(), step.end(), 0.0);
      for (std::size_t i = 0; i < S.size(); ++i) {
        std::fill(m.begin(), m.end(), 0.0);
        const std::vector<double> b = code.factors(S[i]);
        for (std::uint32_t k = 0; k < replication.count; ++k) {
          f[replication.part(S[i], k, 8)]->loss_and_gradient(x, {}, g);
          for (std::size_t j = 0; j < 7; ++j) m[j] += b[k] * g[j];
        }
        for (std::size_t j = 0; j < 7; ++j) step[j] += a[i] * m[j] / 8;
      }
      for (std::size_t j = 0; j < 7; ++j) x[j] -= 0.4 * step[j];
    }
    const RunTrace run = trace(p, false, 1);
    EXPECT_EQ(run.result.last.sim_seconds, 25 * 6.0) << "a round ends with its sixth reply";
    for (std::size_t j = 0; j < 7; ++j) EXPECT_NEAR(run.model[j], x[j], 1e-12) << j;
  }
}

TEST(CodedGd, IsGradientDescentOnARingForAnyLateClients) {
  const RunTrace gd = trace(coded({"algorithm.name=gd", "clients.replication=1"}), false, 1);
  for (const char* seconds : {"lognormal:1", "linear", "sqrt"}) {
    const RunTrace late = trace(
        coded({"clients.replication=3", "server.quorum=0.75", std::string("clients.latency=") + seconds}),
        false, 1);
    for (std::size_t j = 0; j < 7; ++j) EXPECT_NEAR(late.model[j], gd.model[j], 1e-10) << seconds;
  }
}

TEST(CodedGd, HasTheSameBitsInGroupsForAnyLateClients) {
  const Sets groups = {"clients.replication=4", "clients.placement=groups"};
  const RunTrace all = trace(coded(groups), false, 1);
  for (const char* precision : {"fp64", "fp32"})
    for (const char* seconds : {"lognormal:1", "linear"}) {
      Sets sets = groups;
      sets.push_back(std::string("precision=") + precision);
      const RunTrace whole = trace(coded(sets), false, 1);
      sets.insert(sets.end(), {"server.quorum=0.625", std::string("clients.latency=") + seconds});
      for (const unsigned threads : {1u, 3u}) {
        const RunTrace late = trace(coded(sets), false, threads);
        EXPECT_EQ(late.model, whole.model) << seconds << ", " << precision;
        EXPECT_EQ(late.result.last.replies, 5u);
      }
    }
  EXPECT_NE(all.model, std::vector<double>(7));
}

// The server recovers the gradient exactly, although the slowest clients never reply. So the bounds of
// gradient descent hold: avg ‖∇f‖² ≤ 2 Δ⁰/(γT) for γ = 1/L, and the gap falls by 1 − γμ in each round.
TEST(CodedGd, ObeysTheBoundOfGradientDescentWithoutTheSlowest) {
  for (const char* placement : {"ring", "groups"}) {
    const Prepared p = coded({"clients.replication=4", std::string("clients.placement=") + placement,
                              "server.quorum=0.625", "clients.latency=linear", "run.rounds=60"});
    const double gamma = std::stod(p.experiment.algorithm.step_size), L = p.smoothness->L,
                 mu = p.smoothness->mu;
    EXPECT_NEAR(gamma, 1 / L, 1e-15);
    EXPECT_TRUE(p.warnings.empty()) << p.warnings.front();
    const double f_star = find_f_star(p.experiment, ".").value();
    std::vector<RoundRecord> rows;
    RunObserver observer;
    observer.on_record = [&](const RoundRecord& row) { rows.push_back(row); };
    const std::atomic<bool> stop{false};
    simulate(p, false, 1, observer, stop);
    double mean = 0;
    for (std::size_t t = 0; t < 60; ++t) mean += rows[t].grad_norm_sq.value() / 60;
    const double bound = 2 * (rows[0].loss - f_star) / (gamma * 60);
    EXPECT_LE(mean, bound) << placement;
    EXPECT_GE(mean, 0.1 * bound) << placement;
    EXPECT_LE(rows[60].loss - f_star, std::pow(1 - gamma * mu, 60) * (rows[0].loss - f_star)) << placement;
  }
}

TEST(CodedGd, KeepsTheFunctionUnderReplication) {
  const RunTrace plain = trace(coded({"algorithm.name=gd", "clients.replication=1"}), false, 1);
  const RunTrace copied = trace(coded({"algorithm.name=gd", "clients.replication=3"}), false, 1);
  for (std::size_t j = 0; j < 7; ++j) EXPECT_NEAR(copied.model[j], plain.model[j], 1e-13);
  EXPECT_EQ(copied.result.last.grad_calls, 3 * plain.result.last.grad_calls);
}

TEST(CodedGd, IsRejectedIfTheGradientCannotBeRecovered) {
  const auto says = [](const Sets& sets, const std::string& what) {
    EXPECT_NE(coded_refusal(sets).find(what), std::string::npos) << coded_refusal(sets);
  };
  says({"server.quorum=0.75"},
       "coded_gd recovers the gradient from 7 of 8 replies or more, but quorum ends a "
       "round with 6; raise it, or clients.replication, or write recovery = \"approximate\"");
  EXPECT_EQ(coded_refusal({"server.quorum=0.75", "algorithm.recovery=approximate"}), "");
  says({"clients.replication=9"}, "replication = 9 is more than there are clients (8)");
  says({"clients.replication=3", "clients.placement=groups"},
       "replication = 3 does not divide the 8 clients into groups");
  says({"clients.partition=dirichlet"}, "replication = 2 needs parts of one size");
  says({"clients.samples_per_client=5"}, "replication = 2 needs parts of one size");
  EXPECT_THROW(parse_experiment("[problem]\nkind = \"quadratic\"\ndim = 5\n[clients]\nreplication = 2\n"
                                "[algorithm]\nname = \"coded_gd\"\n",
                                "quadratic.toml"),
               ExperimentError);
  says({"clients.replication=0"}, "replication must be");
  says({"clients.count=501", "problem.samples=1002"}, "coded_gd codes a ring of at most 500 clients");
}

TEST(CodedGd, RunsOverTcpWithTheSameBits) {
  const TemporaryFolder folder;
  const std::string file = folder.write("coded.toml", kCoded).string();
  const auto run = [&](const std::string& transport, Sets sets) {
    Sets arguments = {"run", file, "--quiet", "--overwrite", "--transport", transport, "--out", transport};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    const auto program = run_gradwire(folder.path(), arguments);
    EXPECT_EQ(program.code, 0) << program.err;
    return read_file(folder.path() / transport / "model.bin");
  };
  const Sets ring = {"clients.replication=3"}, groups = {"clients.replication=4", "clients.placement=groups"};
  EXPECT_EQ(run("memory", ring), run("tcp", ring));
  // Any five of eight replies end a round.
  const Sets fast = {"clients.replication=4", "clients.placement=groups", "server.quorum=0.625"};
  EXPECT_EQ(run("memory", groups), run("tcp", fast));
}

}  // namespace
}  // namespace gradwire
