// Clients with unusual data: samples of zeros, a single class, a feature or a letter that no other client
// has. They take part in a run of every problem type. A client without samples is refused.
#include <atomic>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "fl_server/plan_of_joins.h"
#include "samples/local_problem.h"
#include "simulation/prepare.h"
#include "simulation/simulate.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

constexpr const char* kOfRows[] = {"kind = \"least_squares\"", "kind = \"logistic\"",
                                   "kind = \"logistic\"\nregularizer = \"l2\"\nlambda = 0.1\nbias = true",
                                   "kind = \"mlp\"\nhidden = [3]",
                                   "kind = \"cnn\"\nhidden = [3]\nfilters = [2]"};
constexpr const char* kOfTexts[] = {"kind = \"char_mlp\"\ncontext = 2\nhidden = [3]\nwidth = 2",
                                    "kind = \"gpt\"\ncontext = 3\nwidth = 4\nheads = 1\nlayers = 1"};

// Client 0 has samples of zeros, client 1 one class, client 2 the last feature.
const std::string kZeros = "0\n1\n0\n1\n", kOneClass = "1 1:2 2:-1\n1 2:3\n1 1:1\n1 1:5\n",
                  kOwnFeature = "0 784:1\n1 1:1 784:2\n0 2:1\n1 784:-3\n";

LoadedExperiment load(const std::string& problem, const std::string& data, const std::string& extra = "") {
  const bool has_theory = problem.find("least") != problem.npos || problem.find("logistic") != problem.npos;
  return parse_experiment("[problem]\n" + problem + "\ndata = \"" + data + "\"\n" + extra +
                              "[clients]\ncount = 3\nweights = \"samples\"\n[algorithm]\nname = \"ef21\"\n"
                              "compressor = \"topk:k=2\"\nstep_size = " +
                              (has_theory ? "\"theory\"" : "0.1") + "\n[run]\nrounds = 4\n",
                          "/odd.toml");
}

// Returns the clients as they join a server.
ClientTable joined(const LoadedExperiment& loaded, const std::vector<ClientDataset>& parts) {
  const ProblemSpec spec = problem_spec(loaded.experiment);
  ClientTable table(3);
  for (ClientId i = 0; i < 3; ++i) {
    const DataSchema own = schema_of(std::span(&parts[i], 1), spec);
    ClientInfo info;
    info.name = "c" + std::to_string(i);
    info.columns = static_cast<std::uint32_t>(own.columns);
    info.labels = own.labels;
    info.alphabet = own.alphabet;
    info.sample_count = parts[i].train_count();
    if (spec.info().has_smoothness) {
      const ClientSmoothness constants = client_smoothness(spec, own, parts[i], i);
      info.smoothness = constants.L_i;
      info.convexity = constants.mu_i;
      info.sample_smoothness = constants.L_s;
      info.sample_smoothness_max = constants.L_sample_max;
    }
    EXPECT_TRUE(check_client(info, loaded.experiment));
    EXPECT_EQ(table.assign(info.name, {}, {}).value(), i);
    EXPECT_TRUE(table.join(i, info));
  }
  return table;
}

void expect_run(const LoadedExperiment& loaded, const std::vector<ClientDataset>& parts) {
  Prepared simulated = prepare(loaded);
  const RunPlan served = plan_of_joins(loaded, joined(loaded, parts));
  EXPECT_EQ(served.d, simulated.d);
  EXPECT_EQ(served.samples, simulated.samples);
  EXPECT_EQ(served.weights, simulated.weights);
  EXPECT_EQ(served.x0, simulated.x0);
  EXPECT_EQ(served.schema.labels, simulated.schema.labels);
  EXPECT_EQ(served.schema.alphabet, simulated.schema.alphabet);
  EXPECT_NE(served.experiment.algorithm.step_size, "theory");
  EXPECT_NE(served.experiment.algorithm.step_size, "inf");
  const std::atomic<bool> stop{false};
  const RunResult result = simulate(std::move(simulated), true, 1, {}, stop);
  EXPECT_EQ(result.outcome, Outcome::kFinished);
  EXPECT_TRUE(std::isfinite(result.last.loss));
  ASSERT_TRUE(result.last.grad_norm_sq);
  EXPECT_TRUE(std::isfinite(*result.last.grad_norm_sq));
}

// Normalises as clients and a server do it, if problem.normalize needs the sums of all clients.
void normalize_by_sums(const ExperimentSpec& experiment, std::vector<ClientDataset>& parts) {
  const Normalize kind = rows_of(experiment.problem)->normalize;
  if (!needs_sums(kind)) return;
  std::vector<ClientSums> sums;
  for (const ClientDataset& part : parts) sums.push_back(sums_of(part.train, kind));
  const Normalization map = normalization_of(sums, kind);
  for (ClientDataset& part : parts) {
    normalize(part.train, map);
    normalize(part.test, map);
  }
}

TEST(OddClients, TrainOnRowsOfEveryProblemType) {
  const TemporaryFolder folder;
  const std::string all = folder.write("all.txt", kZeros + kOneClass + kOwnFeature).string();
  for (const std::string problem : kOfRows)
    for (const std::string normalize : {"none", "standard", "minmax", "unit_rows"}) {
      SCOPED_TRACE(problem + ", " + normalize);
      const LoadedExperiment loaded = load(problem, "libsvm:" + all, "normalize = \"" + normalize + "\"\n");
      std::vector<ClientDataset> parts;
      for (const std::uint32_t i : {0u, 1u, 2u})
        parts.push_back(load_part(loaded.experiment, {"libsvm:" + all, PartNumber{i, 3}}, "/"));
      normalize_by_sums(loaded.experiment, parts);
      expect_run(loaded, parts);
      parts.clear();
      for (const std::string& text : {kZeros, kOneClass, kOwnFeature})
        parts.push_back(load_part(loaded.experiment,
                                  {"libsvm:" + folder.write("own.txt", text).string(), std::nullopt}, "/"));
      EXPECT_EQ(parts[0].train.columns, 0u);
      normalize_by_sums(loaded.experiment, parts);
      expect_run(loaded, parts);
    }
}

TEST(OddClients, TrainOnTextsOfEveryProblemType) {
  const TemporaryFolder folder;
  std::string same, two, own;  // a single letter, two letters, letters that no other client has
  for (int k = 0; k < 20; ++k) same += "aaa\n", two += "bab\n", own += "xyz\n";
  const std::string all = folder.write("all.txt", same + two + own).string();
  for (const std::string problem : kOfTexts) {
    SCOPED_TRACE(problem);
    const LoadedExperiment loaded = load(problem, "text:" + all);
    std::vector<ClientDataset> parts;
    for (const std::uint32_t i : {0u, 1u, 2u})
      parts.push_back(load_part(loaded.experiment, {"text:" + all, PartNumber{i, 3}}, "/"));
    expect_run(loaded, parts);
  }
}

TEST(OddClients, AreRefusedWithoutSamples) {
  for (const auto* problems : {&kOfRows[0], &kOfTexts[0]})
    for (const char* problem : {problems[0], problems[1]}) {
      const bool is_text = problems == &kOfTexts[0];
      const LoadedExperiment loaded = load(problem, is_text ? "text:x" : "libsvm:x");
      ClientInfo info;
      info.name = "c0";
      const Status status = check_client(info, loaded.experiment);
      ASSERT_FALSE(status) << problem;
      EXPECT_EQ(status.error().message,
                "its data has no sample for training; add samples, or start it with other data");
      info.sample_count = 1;
      EXPECT_TRUE(check_client(info, loaded.experiment)) << problem;
    }
  const LoadedExperiment drawn = parse_experiment(
      "[problem]\nkind = \"quadratic\"\ndim = 3\n[clients]\ncount = 3\n[algorithm]\nname = \"gd\"\n",
      "q.toml");
  EXPECT_TRUE(check_client({}, drawn.experiment));
}

}  // namespace
}  // namespace gradwire
