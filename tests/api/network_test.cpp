// Networks of a program, trained by train().
#include "gradwire/network.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "gradwire/train.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

constexpr std::size_t kClients = 3, kRows = 40, kFeatures = 6, kHidden = 5, kClasses = 3;

// The network of problem.kind = "mlp" with hidden = [5].
Network perceptron() {
  Network net;
  const Tensor hidden = net.affine(net.feature_linear(kFeatures, kHidden));
  cross_entropy(affine(net.linear(kHidden, kClasses), tanh(hidden)));
  return net;
}

// The samples of the clients, one client after another; every fifth feature is 0.
struct LabelledNumbers {
  std::vector<double> features;  // shape (clients * rows, features)
  std::vector<Token> labels;
};
LabelledNumbers random_rows() {
  Random random(7, "rows of a network test");
  LabelledNumbers rows;
  for (std::size_t k = 0; k < kClients * kRows; ++k) {
    double best = -1;
    rows.labels.push_back(0);
    for (std::size_t j = 0; j < kFeatures; ++j) {
      const double value = (k + j) % 5 == 0 ? 0 : static_cast<float>(random.normal());
      rows.features.push_back(value);
      if (j < kClasses && value > best) best = value, rows.labels.back() = static_cast<Token>(j);
    }
  }
  return rows;
}

template <class Real>
NetworkSamples<Real> sparse_samples(const LabelledNumbers& rows, std::size_t client) {
  NetworkSamples<Real> samples{.count = kRows, .row_start = {0}};
  for (std::size_t k = client * kRows; k < (client + 1) * kRows; ++k) {
    for (std::uint32_t j = 0; j < kFeatures; ++j) {
      const double value = rows.features[k * kFeatures + j];
      if (value == 0) continue;
      samples.index.push_back(j);
      samples.value.push_back(static_cast<Real>(value));
    }
    samples.row_start.push_back(samples.index.size());
    samples.labels.push_back(rows.labels[k]);
  }
  return samples;
}

template <class Real>
void expect_run_of_mlp(const std::string& precision) {
  const LabelledNumbers rows = random_rows();
  std::string csv = "label,a,b,c,d,e,f\n";
  for (std::size_t k = 0; k < rows.labels.size(); ++k) {
    csv += std::to_string(rows.labels[k]);
    for (std::size_t j = 0; j < kFeatures; ++j)
      csv += "," + KeyValue(rows.features[k * kFeatures + j]).text();
    csv += "\n";
  }
  const TemporaryFolder folder;
  folder.write("rows.csv", csv);
  const KeyValues keys = {{"clients.count", kClients},   {"precision", precision},
                          {"algorithm.name", "ef21"},    {"algorithm.compressor", "topk:k=7"},
                          {"algorithm.step_size", 0.25}, {"run.rounds", 25}};
  KeyValues mlp = keys, custom = keys;
  const Network net = perceptron();
  mlp.insert(mlp.end(), {{"problem.kind", "mlp"},
                         {"problem.data", "csv:" + (folder.path() / "rows.csv").string()},
                         {"problem.bias", false},
                         {"problem.hidden", "[5]"}});
  custom.insert(custom.end(), {{"problem.kind", "custom"}, {"problem.dim", net.dim()}});
  std::vector<std::unique_ptr<Oracle<Real>>> oracles;
  for (std::size_t i = 0; i < kClients; ++i)
    oracles.push_back(network_oracle<Real>(net, sparse_samples<Real>(rows, i)));
  const TrainResult want = train(Experiment::from(mlp), {.x0 = net.start(3)});
  for (const unsigned threads : {1u, 5u}) {
    const TrainResult got =
        train(oracles, Experiment::from(custom), {.x0 = net.start(3), .threads = threads});
    EXPECT_TRUE(std::ranges::equal(got.model(), want.model()));
    for (const char* column : {"loss", "grad_norm_sq", "bytes_up", "bytes_down"})
      EXPECT_EQ(got.metrics(column), want.metrics(column)) << column;
  }
  EXPECT_LT(want.rows().back().loss, want.rows().front().loss);
}

TEST(NetworkTraining, GivesTheBitsOfProblemKindMlpWithTheSameSamples) {
  expect_run_of_mlp<double>("fp64");
  expect_run_of_mlp<float>("fp32");
}

TEST(NetworkTraining, ReportsTheAccuracyOverTheTestSamplesOfAllClients) {
  Network net;
  cross_entropy(affine(net.linear(1, 2, false), net.features(1)));
  const auto oracle = [&](std::vector<float> test, std::vector<Token> labels) {
    NetworkSamples<float> samples{.count = labels.size(), .features = std::move(test), .labels = labels};
    return network_oracle<float>(net, {.count = 1, .features = {1}, .labels = {1}}, std::move(samples));
  };
  std::vector<std::unique_ptr<Oracle<float>>> oracles;
  oracles.push_back(oracle({1, 2, -1}, {1, 1, 1}));  // the second class wins for positive numbers
  oracles.push_back(oracle({3}, {0}));
  const TrainResult result =
      train(oracles, {.algorithm = "gd", .step_size = 0.1, .rounds = 1}, {.x0 = {0, 1}});
  ASSERT_TRUE(result.rows().front().accuracy);
  EXPECT_EQ(*result.rows().front().accuracy, 0.5);
  EXPECT_EQ(*result.rows().back().accuracy, 0.5);
}

}  // namespace
}  // namespace gradwire
