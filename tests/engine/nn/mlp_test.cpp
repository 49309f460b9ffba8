#include "engine/nn/models/mlp.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "engine/data/client_dataset.h"
#include "engine/nn/models/samples.h"
#include "engine/nn/network_ops.h"
#include "engine/nn/network_oracle.h"
#include "tests/engine/oracle_checks.h"

namespace gradwire {
namespace {

const std::vector<double> kLabels = {-1, 0.5, 4, 9};

template <class Real>
NetworkOracle<Real> oracle_of(const MlpShape& shape, const ClientDataset& part,
                              const std::vector<double>& labels, Regularizer regularizer = Regularizer::kNone,
                              double lambda = 0) {
  const auto samples = [&](const Dataset& data) {
    return std::make_unique<SparseSamples<Real>>(data, shape.inputs, labels);
  };
  return {mlp(shape), samples(part.train), part.test_count() > 0 ? samples(part.test) : nullptr, regularizer,
          lambda};
}

// The place of a layer in the flat vector: weights, then bias. The weights have shape (in, out) in the first
// layer and (out, in) in the others.
struct Layer {
  std::size_t in, out, weights, bias;
  bool by_input;
  std::size_t weight(std::size_t k, std::size_t j) const {
    return weights + (by_input ? k * out + j : j * in + k);
  }
};
std::vector<Layer> layers_of(const MlpShape& shape) {
  std::vector<Layer> layers;
  std::size_t first = 0, in = shape.inputs;
  for (std::size_t l = 0; l <= shape.hidden.size(); ++l) {
    const std::size_t out = l < shape.hidden.size() ? shape.hidden[l] : shape.classes;
    layers.push_back({in, out, first, first + in * out, l == 0});
    first += (in + 1) * out;
    in = out;
  }
  return layers;
}

struct Case {
  std::vector<std::uint32_t> hidden;
  Regularizer regularizer;
};
class Mlp : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr double kLambda = 0.05;
  static constexpr std::size_t kInputs = 6;
  ClientDataset part_{random_data(23, kInputs, 0.6, kLabels), random_data(50, kInputs, 0.6, kLabels, 7)};
  MlpShape shape_{kInputs, GetParam().hidden, kLabels.size()};
  template <class Real>
  NetworkOracle<Real> oracle() const {
    return oracle_of<Real>(shape_, part_, kLabels, GetParam().regularizer, kLambda);
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, Mlp,
                         ::testing::Values(Case{{}, Regularizer::kNone}, Case{{}, Regularizer::kL2},
                                           Case{{5}, Regularizer::kNone}, Case{{17}, Regularizer::kL2},
                                           Case{{1, 3}, Regularizer::kNone},
                                           Case{{9, 4, 8}, Regularizer::kL2}));

// Layers as in a textbook: activations, then deltas from the top.
struct Naive {
  double loss = 0;
  std::vector<double> gradient;
  std::vector<std::size_t> predicted;  // one per row
};
Naive naive(const MlpShape& shape, const Dataset& data, const std::vector<double>& x,
            std::span<const double> labels) {
  Naive result;
  result.gradient.resize(x.size());
  const DenseRows rows = dense_rows(data);
  const auto layers = layers_of(shape);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::vector<std::vector<double>> input = {rows[r]};  // input of each layer; the last entry is the logits
    for (std::size_t l = 0; l < layers.size(); ++l) {
      std::vector<double> z(layers[l].out);
      for (std::size_t j = 0; j < layers[l].out; ++j) {
        z[j] = x[layers[l].bias + j];
        for (std::size_t k = 0; k < layers[l].in; ++k) {
          z[j] += x[layers[l].weight(k, j)] * input[l][k];
        }
        if (l + 1 < layers.size()) z[j] = std::tanh(z[j]);
      }
      input.push_back(z);
    }
    std::vector<double> delta = input.back();
    result.predicted.push_back(std::max_element(delta.begin(), delta.end()) - delta.begin());
    double sum = 0;
    for (const double z : delta) sum += std::exp(z);
    for (std::size_t j = 0; j < delta.size(); ++j) {
      const bool is_label = labels[j] == data.label[r];
      if (is_label) result.loss += (std::log(sum) - delta[j]) / static_cast<double>(rows.size());
      delta[j] = (std::exp(delta[j]) / sum - is_label) / static_cast<double>(rows.size());
    }
    for (std::size_t l = layers.size(); l-- > 0;) {
      std::vector<double> below(layers[l].in);
      for (std::size_t j = 0; j < layers[l].out; ++j) {
        result.gradient[layers[l].bias + j] += delta[j];
        for (std::size_t k = 0; k < layers[l].in; ++k) {
          const std::size_t w = layers[l].weight(k, j);
          result.gradient[w] += delta[j] * input[l][k];
          below[k] += delta[j] * x[w] * (1 - input[l][k] * input[l][k]);
        }
      }
      delta = below;
    }
  }
  return result;
}

TEST_P(Mlp, EqualsIndependentNaiveImplementation) {
  auto oracle = this->oracle<double>();
  for (const double scale : {0.0, 0.3, 2.0}) {
    const std::vector<double> x = random_point(oracle.dim(), scale);
    Naive want = naive(shape_, part_.train, x, kLabels);
    if (GetParam().regularizer == Regularizer::kL2) {
      for (std::size_t j = 0; j < x.size(); ++j) {
        want.loss += kLambda / 2 * x[j] * x[j];
        want.gradient[j] += kLambda * x[j];
      }
    }
    const auto got = evaluate(oracle, x);
    EXPECT_NEAR(got.loss, want.loss, 1e-13 * want.loss);
    for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(got.gradient[j], want.gradient[j], 1e-13) << j;
  }
}

TEST_P(Mlp, GradientMatchesFiniteDifferences) {
  auto oracle = this->oracle<double>();
  for (const double scale : {0.1, 1.0})
    expect_matches_finite_differences(oracle, random_point(oracle.dim(), scale));
}

TEST_P(Mlp, BatchesAreMeansOfSamplesAndCallsRepeatBits) {
  auto oracle = this->oracle<double>();
  expect_batches_agree(oracle, random_point(oracle.dim(), 1));
}

TEST_P(Mlp, FloatAgreesWithDouble) {
  auto narrow = this->oracle<float>();
  auto wide = this->oracle<double>();
  expect_float_agrees(narrow, wide, random_point(wide.dim(), 0.5));
}

TEST_P(Mlp, ScoreCountsTestSamplesWhoseLabelHasLargestLogit) {
  auto oracle = this->oracle<double>();
  const std::vector<double> x = random_point(oracle.dim(), 1);
  const Naive want = naive(shape_, part_.test, x, kLabels);
  std::uint64_t correct = 0;
  for (std::size_t r = 0; r < 50; ++r) correct += kLabels[want.predicted[r]] == part_.test.label[r];
  const auto got = oracle.score(x);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->correct, correct);
  EXPECT_EQ(got->tested, 50u);
}

TEST_P(Mlp, StartIsScaledRandomAndDependsOnSeed) {
  const Network network = mlp(shape_);
  const std::vector<double> start = network.start(3);
  EXPECT_EQ(start, network.start(3));
  EXPECT_NE(start, network.start(4));
  for (const Layer& layer : layers_of(shape_)) {
    double square = 0;
    for (std::size_t j = layer.weights; j < layer.bias; ++j) square += start[j] * start[j];
    const auto count = static_cast<double>(layer.in * layer.out);
    EXPECT_NEAR(square * static_cast<double>(layer.in) / count, 1, 5 * std::sqrt(2 / count));
    for (std::size_t j = 0; j < layer.out; ++j) EXPECT_EQ(start[layer.bias + j], 0);
  }
}

TEST(MlpNetwork, ParametersAreOneRangeLayerByLayer) {
  const Network network = mlp({.inputs = 64, .hidden = {32}, .classes = 10});
  EXPECT_EQ(network.dim(), 64u * 32 + 32 + 32 * 10 + 10);
  ASSERT_EQ(network.content().ops.size(), 4u);  // sparse affine, tanh, affine, loss
  EXPECT_EQ(network.content().ops[0].first[0], 0u);
  EXPECT_EQ(network.content().ops[0].first[1], 64u * 32);
  EXPECT_EQ(network.content().ops[2].first[0], 64u * 32 + 32);
  EXPECT_EQ(network.content().ops[2].first[1], 64u * 32 + 32 + 320);
}

TEST(MlpErrors, RejectsUnknownLabel) {
  const Dataset data = random_data(5, 3, 1, {1, 2});
  EXPECT_THROW(SparseSamples<double>(data, 3, std::vector<double>{1, 3}), DataError);
  EXPECT_THROW(SparseSamples<double>(data, 3, std::vector<double>{1}), DataError);
  EXPECT_THROW(SparseSamples<double>(data, 2, std::vector<double>{1, 2}), DataError);
  EXPECT_THROW(DenseSamples<double>(data, 2, std::vector<double>{1, 2}), DataError);
  EXPECT_EQ(class_numbers(data, std::vector<double>{0, 1, 2})[0], 1u);
}

TEST(MlpTraining, GradientDescentSeparatesThreeClouds) {
  DenseRows rows;
  std::vector<double> labels;
  Random random(1, "clouds");
  for (int r = 0; r < 150; ++r) {
    const int cloud = r % 3;
    rows.push_back({2.0 * (cloud == 1) + 0.4 * random.normal(), 2.0 * (cloud == 2) + 0.4 * random.normal()});
    labels.push_back(cloud);
  }
  const Dataset data = sparse_data(rows, labels, 2);
  const ClientDataset part{data, data};
  const std::vector<std::uint32_t> hidden = {8};
  const MlpShape shape{2, hidden, 3};
  auto oracle = oracle_of<float>(shape, part, {0, 1, 2});
  const std::vector<double> start = mlp(shape).start(1);
  std::vector<float> x(start.begin(), start.end()), gradient(x.size());
  for (int round = 0; round < 300; ++round) {
    oracle.loss_and_gradient(x, {}, gradient);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] -= 0.5f * gradient[j];
  }
  EXPECT_GE(oracle.score(x)->correct, 147u);
}

}  // namespace
}  // namespace gradwire
