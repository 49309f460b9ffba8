// Misuse that a network or its executor rejects, always by an exception with one line that names the error.
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/dataset.h"
#include "tests/engine/nn/network_checks.h"
#include "tests/engine/nn/network_zoo.h"

namespace gradwire {
namespace {

template <class Error>
void expect_refusal(const std::function<void()>& what, const std::string& part = "") {
  try {
    what();
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_GE(text.size(), 15u) << text;
    EXPECT_LE(text.size(), 160u) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

void expect_logic_error(const std::function<void()>& what, const std::string& part = "") {
  expect_refusal<std::logic_error>(what, part);
}

TEST(NetworkMisuse, RejectsTensorsWithoutNetwork) {
  Network net;
  const Tensor none, x = net.features(3);
  expect_logic_error([&] { none.network(); });
  expect_logic_error([&] { none.shape(); });
  expect_logic_error([&] { tanh(none); });
  expect_logic_error([&] { affine(net.linear(3, 3), none); });
  expect_logic_error([&] { x + none; });
  expect_logic_error([&] { none* x; });
  expect_logic_error([&] { attention(x, x, none, 1); });
  expect_logic_error([&] { attention(x, none, x, 1); });
  expect_logic_error([&] { attention(none, x, x, 1); });
  expect_logic_error([&] { norm(net.layer_norm(3), none); });
  expect_logic_error([&] { convolve(net.convolution(1, 1, 1), none); });
  expect_logic_error([&] { max_pool(none, 1); });
  expect_logic_error([&] { mean_over_positions(none); });
  expect_logic_error([&] { cross_entropy(none); });
  expect_logic_error([&] { mean_squared_error(none); });
  expect_logic_error([&] { custom_loss(none, log_cosh_loss); });
}

TEST(NetworkMisuse, RejectsTensorsOfTwoNetworks) {
  Network one, two;
  const Tensor x = one.features(3), y = two.features(3);
  expect_logic_error([&] { x + y; }, "two networks");
  expect_logic_error([&] { x* y; }, "two networks");
  expect_logic_error([&] { attention(x, x, y, 1); }, "two networks");
  expect_logic_error([&] { attention(x, y, x, 1); }, "two networks");
  expect_logic_error([&] { attention(y, x, x, 1); }, "two networks");
}

TEST(NetworkMisuse, RejectsLayersOfAnotherNetwork) {
  Network small, large;
  small.linear(2, 2);
  const Linear layer = large.linear(30, 3);
  const Table table = large.table(50, 4);
  const LayerNorm scale = large.layer_norm(30);
  const FeatureLinear sparse = large.feature_linear(20, 5);
  const Convolution filter = large.convolution(30, 1, 1);
  const Tensor x = small.features(30);
  expect_logic_error([&] { affine(layer, x); }, "parameters");
  expect_logic_error([&] { norm(scale, x); }, "parameters");
  expect_logic_error([&] { convolve(filter, x); }, "parameters");
  expect_logic_error([&] { small.embed(table); }, "parameters");
  expect_logic_error([&] { small.affine(sparse); }, "parameters");
}

// A layer of another network is an error even if this network has a layer with the same range of parameters.
TEST(NetworkMisuse, RejectsFittingLayersOfAnotherNetwork) {
  const auto declare = [](Network& net) {
    struct Layers {
      Table table;
      Linear linear;
      FeatureLinear sparse;
      LayerNorm scale;
      Convolution filter;
    };
    return Layers{net.table(4, 3), net.linear(3, 3), net.feature_linear(3, 3), net.layer_norm(3),
                  net.convolution(3, 1, 1)};
  };
  Network net, other;
  const auto own = declare(net), foreign = declare(other);
  const Tensor x = net.features(3);
  expect_logic_error([&] { affine(foreign.linear, x); }, "another network");
  expect_logic_error([&] { norm(foreign.scale, x); }, "another network");
  expect_logic_error([&] { convolve(foreign.filter, x); }, "another network");
  expect_logic_error([&] { net.embed(foreign.table); }, "another network");
  expect_logic_error([&] { net.affine(foreign.sparse); }, "another network");
  Network placed;
  const Table tokens = placed.table(4, 3);
  expect_logic_error([&] { placed.embed(tokens, other.table(1, 3)); }, "another network");
  expect_logic_error([&] { affine(Linear{}, x); }, "another network");

  Network copy = net;
  const Tensor y = copy.features(3);
  EXPECT_NO_THROW(norm(own.scale, affine(own.linear, y)));
  const Linear later = net.linear(3, 3);  // not in the copy
  expect_logic_error([&] { affine(later, y); }, "parameters");
  Network moved = std::move(copy);
  EXPECT_NO_THROW(affine(own.linear, moved.features(3)));
}

TEST(NetworkMisuse, RejectsMissingTensors) {
  Network net;
  net.features(3);
  NetworkOp op{.kind = OpKind::kActivation};
  op.in[0] = 1;
  expect_logic_error([&] { record(net, op, {3}); }, "tensor");
}

TEST(NetworkMisuse, RejectsMismatchedShapes) {
  Network net(2);
  const Tensor x = net.features(3), y = net.features(4), image = net.features(TensorShape{1, 3, 4}),
               flat = net.features(12);
  expect_logic_error([&] { x + y; }, "3");
  expect_logic_error([&] { x* y; }, "4");
  expect_logic_error([&] { image + flat; }, "12");
  expect_logic_error([&] { affine(net.linear(5, 2), x); }, "5");
  expect_logic_error([&] { norm(net.layer_norm(5), x); }, "5");
  expect_logic_error([&] { attention(x, x, y, 1); });
  expect_logic_error([&] { attention(x, y, x, 1); });
  expect_logic_error([&] { attention(y, x, x, 1); });
  expect_logic_error([&] { convolve(net.convolution(2, 1, 2), image); }, "2");
  expect_logic_error([&] { net.embed(net.table(5, 3), net.table(3, 3)); }, "2");
  expect_logic_error([&] { net.embed(net.table(5, 3), net.table(2, 4)); }, "3");
}

TEST(NetworkMisuse, RejectsHeadsThatDoNotDivideWidth) {
  Network net(2);
  const Tensor x = net.features(6);
  expect_logic_error([&] { attention(x, x, x, 4); }, "4 heads");
  expect_logic_error([&] { attention(x, x, x, 0); });
  expect_logic_error([&] { attention(x, x, x, 12); });
  EXPECT_NO_THROW(attention(x, x, x, 6));
}

TEST(NetworkMisuse, RejectsFiltersAndSquaresLargerThanImage) {
  Network net;
  const Tensor image = net.features(TensorShape{1, 3, 5});
  expect_logic_error([&] { convolve(net.convolution(1, 1, 4), image); }, "4 x 4");
  expect_logic_error([&] { convolve(net.convolution(1, 1, 6, 1), image); });
  EXPECT_NO_THROW(convolve(net.convolution(1, 1, 4, 1), image));
  expect_logic_error([&] { max_pool(image, 4); });
  expect_logic_error([&] { average_pool(image, 4); });
  expect_logic_error([&] { max_pool(image, 0); });
  EXPECT_NO_THROW(max_pool(image, 3));
  const Tensor large = net.features(TensorShape{1, 5000, 5000});
  expect_logic_error([&] { max_pool(large, 4097); }, "4096");
  EXPECT_NO_THROW(max_pool(large, 4096));
  EXPECT_NO_THROW(average_pool(large, 4097));
}

TEST(NetworkMisuse, RejectsZeroSizes) {
  expect_logic_error([] { Network net(0); });
  Network net;
  expect_logic_error([&] { net.table(0, 3); });
  expect_logic_error([&] { net.table(3, 0); });
  expect_logic_error([&] { net.linear(0, 3); });
  expect_logic_error([&] { net.linear(3, 0); });
  expect_logic_error([&] { net.feature_linear(0, 3); });
  expect_logic_error([&] { net.layer_norm(0); });
  expect_logic_error([&] { net.convolution(0, 1, 1); });
  expect_logic_error([&] { net.convolution(1, 0, 1); });
  expect_logic_error([&] { net.convolution(1, 1, 0); });
  expect_logic_error([&] { net.features(0); });
  expect_logic_error([&] { net.features(TensorShape{1, 0, 4}); });
  expect_logic_error([&] { net.embed(net.table(3, 3), std::size_t{0}); });
}

TEST(NetworkMisuse, RejectsHugeSizes) {
  const std::size_t huge = std::numeric_limits<std::size_t>::max();
  Network net;
  expect_logic_error([&] { Network many(huge); });
  expect_logic_error([&] { net.linear(huge, huge); });
  expect_logic_error([&] { net.linear(1 << 20, 1 << 20); });
  expect_logic_error([&] { net.linear(huge / 2 + 1, 2); });
  expect_logic_error([&] { net.table(huge, 1); });
  expect_logic_error([&] { net.table(65537, 1); }, "65536");
  expect_logic_error([&] { net.convolution(huge, huge, huge); });
  expect_logic_error([&] { net.convolution(1, 1, std::size_t{1} << 32); });
  expect_logic_error([&] { net.features(TensorShape{huge, huge, huge}); });
  expect_logic_error([&] { net.embed(net.table(2, 2), huge); });
  for (const double epsilon :
       {-1e-3, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    expect_logic_error([&] { net.layer_norm(3, epsilon); }, "epsilon");
}

TEST(NetworkMisuse, RejectsSparseFeaturesAtSeveralPositions) {
  Network net(2);
  expect_logic_error([&] { net.affine(net.feature_linear(3, 2)); }, "one position");
}

TEST(NetworkMisuse, RejectsMissingLossAndOperationsAfterIt) {
  Network none;
  affine(none.linear(2, 2), none.features(2));
  expect_logic_error([&] { Executor<float> executor(none); }, "loss");
  expect_logic_error([&] { Executor<double> executor(Network{}); }, "loss");

  Network net;
  const Tensor x = net.features(2);
  expect_logic_error([&] { custom_loss(x, {}); }, "function");
  cross_entropy(x);
  expect_logic_error([&] { cross_entropy(x); }, "loss");
  expect_logic_error([&] { mean_squared_error(x); }, "loss");
  expect_logic_error([&] { tanh(x); }, "loss");
  expect_logic_error([&] { net.features(2); }, "loss");
}

TEST(NetworkMisuse, RejectsLargeMicroBatches) {
  const Network net = zoo_letters();
  expect_logic_error([&] { Executor<float> executor(net, 257); }, "256");
  EXPECT_NO_THROW(Executor<float>(net, 16));
}

// An executor and a valid sample for it.
template <class Real>
struct Stand {
  explicit Stand(const Network& net)
      : executor(net),
        samples(net, 1, 1),
        x(net.dim(), Real(0.1)),
        gradient(net.dim()),
        example(samples[0]) {}

  // Expects that all four calls reject `bad`, and that the executor still computes valid examples right.
  void expect_data_error(const Example<Real>& bad, const std::string& part) {
    const double before = executor.loss(x, 1, samples.at());
    const auto at = [&](std::size_t) { return bad; };
    expect_refusal<DataError>([&] { executor.loss_and_gradient(x, 1, at, gradient); }, part);
    expect_refusal<DataError>([&] { executor.loss(x, 1, at); }, part);
    expect_refusal<DataError>([&] { executor.descend(x, 1, at, Real(0.1)); }, part);
    expect_refusal<DataError>([&] { executor.outputs(x, 1, at, [](std::size_t, std::span<const Real>) {}); },
                              part);
    // The bad sample follows valid ones, in the same microbatch and in a later one.
    for (const std::size_t count : {2, 40})
      expect_refusal<DataError>(
          [&] { executor.loss(x, count, [&](std::size_t k) { return k + 1 < count ? example : bad; }); },
          part);
    EXPECT_EQ(executor.loss(x, 1, samples.at()), before);
  }

  Executor<Real> executor;
  RandomSamples<Real> samples;
  std::vector<Real> x, gradient;
  Example<Real> example;
};

TEST(NetworkMisuse, RejectsTokensAndLabelsOutOfRange) {
  Stand<float> stand(zoo_transformer(5, 6, 2));  // 7 letters
  std::vector<Token> tokens(stand.example.tokens.begin(), stand.example.tokens.end());
  for (const Token bad : {7, 8, 65535})
    for (const std::size_t place : {0, 4}) {
      std::vector<Token> changed = tokens;
      changed[place] = bad;
      Example<float> example = stand.example;
      example.tokens = changed;
      stand.expect_data_error(example, std::to_string(bad));
      example = stand.example;
      example.labels = changed;
      stand.expect_data_error(example, std::to_string(bad));
    }
  Example<float> example = stand.example;
  example.tokens = std::span(tokens).first(4);
  stand.expect_data_error(example, "4");
  tokens.resize(6, 0);
  example.tokens = tokens;
  stand.expect_data_error(example, "6");
  example = stand.example;
  example.labels = {};
  stand.expect_data_error(example, "labels");
  example.labels = tokens;
  stand.expect_data_error(example, "labels");
}

TEST(NetworkMisuse, RejectsWrongTokensForTwoTables) {
  Network net;
  const Table large = net.table(9, 2), small = net.table(5, 2);
  cross_entropy(net.embed(large) + net.embed(small));
  Stand<double> stand(net);
  const std::vector<Token> tokens = {5};
  Example<double> example = stand.example;
  example.tokens = tokens;
  stand.expect_data_error(example, "5");
}

TEST(NetworkMisuse, RejectsFeaturesOfWrongLength) {
  Stand<float> stand(zoo_image());
  const std::vector<float> features(2 * 7 * 6 + 1);
  for (const std::size_t length : {std::size_t{0}, std::size_t{83}, features.size()}) {
    Example<float> example = stand.example;
    example.features = std::span(features).first(length);
    stand.expect_data_error(example, std::to_string(length));
  }
}

TEST(NetworkMisuse, RejectsSparseFeaturesOutOfRange) {
  Stand<float> stand(zoo_sparse());  // 11 features
  const std::vector<float> value = {1, 2, 3};
  for (const std::uint32_t bad : {11u, 12u, 0xffffffffu}) {
    const std::vector<std::uint32_t> index = {0, bad, 3};
    Example<float> example = stand.example;
    example.index = index, example.value = value;
    stand.expect_data_error(example, std::to_string(bad));
  }
  const std::vector<std::uint32_t> index = {0, 3};
  Example<float> example = stand.example;
  example.index = index, example.value = value;
  stand.expect_data_error(example, "3");
}

TEST(NetworkMisuse, RejectsTargetsOfWrongLength) {
  Stand<double> stand(zoo_regression());  // 2 positions of 2
  const std::vector<double> targets(5);
  for (const std::size_t length : {0, 2, 3, 5}) {
    Example<double> example = stand.example;
    example.targets = std::span(targets).first(length);
    stand.expect_data_error(example, std::to_string(length));
  }
  Stand<double> own(zoo_shared());  // 3 positions; any number of targets at each
  Example<double> example = own.example;
  example.targets = std::span(targets).first(4);
  own.expect_data_error(example, "4");
  example = own.example;
  example.labels = example.labels.first(2);
  own.expect_data_error(example, "2");
}

TEST(NetworkMisuse, RejectsPointsAndGradientsOfWrongLength) {
  Stand<double> stand(zoo_letters());
  const std::size_t dim = stand.x.size();
  const auto at = stand.samples.at();
  for (const std::size_t wrong : {std::size_t{0}, dim - 1, dim + 1}) {
    std::vector<double> other(wrong);
    const std::string length = std::to_string(wrong);
    expect_logic_error([&] { stand.executor.loss_and_gradient(other, 1, at, stand.gradient); }, length);
    expect_logic_error([&] { stand.executor.loss_and_gradient(stand.x, 1, at, other); }, length);
    expect_logic_error([&] { stand.executor.descend(other, 1, at, 0.1); }, length);
    expect_logic_error([&] { stand.executor.loss(other, 1, at); }, length);
    expect_logic_error(
        [&] { stand.executor.outputs(other, 1, at, [](std::size_t, std::span<const double>) {}); }, length);
  }
}

TEST(NetworkMisuse, RejectsEmptyBatch) {
  Stand<double> stand(zoo_letters());
  const auto at = stand.samples.at();
  expect_logic_error([&] { stand.executor.loss_and_gradient(stand.x, 0, at, stand.gradient); }, "no samples");
  expect_logic_error([&] { stand.executor.loss(stand.x, 0, at); }, "no samples");
  expect_logic_error([&] { stand.executor.descend(stand.x, 0, at, 0.1); }, "no samples");
}

TEST(NetworkMisuse, PassesOnExceptionsOfCaller) {
  Stand<double> stand(zoo_letters());
  const double before = stand.executor.loss(stand.x, 1, stand.samples.at());
  const auto at = [&](std::size_t k) {
    if (k == 3) throw std::runtime_error("the sample is gone");
    return stand.example;
  };
  EXPECT_THROW(stand.executor.loss_and_gradient(stand.x, 9, at, stand.gradient), std::runtime_error);
  EXPECT_EQ(stand.executor.loss(stand.x, 1, stand.samples.at()), before);
}

}  // namespace
}  // namespace gradwire
