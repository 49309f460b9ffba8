// Tensors and parameters that several operations read, and tensors that no operation reads. Gradients must
// add up and values must not be overwritten.
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/nn/network_checks.h"
#include "tests/engine/nn/network_zoo.h"

namespace gradwire {
namespace {

// A function of a tensor of 6 numbers that takes a gradient. Its result has 6 numbers.
using Use = std::function<Tensor(Network&, const Tensor&)>;

const std::vector<std::pair<std::string, Use>>& uses() {
  static const std::vector<std::pair<std::string, Use>> all = {
      {"x", [](Network&, const Tensor& x) { return x; }},
      {"tanh x", [](Network&, const Tensor& x) { return tanh(x); }},
      {"relu x", [](Network&, const Tensor& x) { return relu(x); }},
      {"sigmoid x", [](Network&, const Tensor& x) { return sigmoid(x); }},
      {"gelu x", [](Network&, const Tensor& x) { return gelu(x); }},
      {"x + x", [](Network&, const Tensor& x) { return x + x; }},
      {"x * x", [](Network&, const Tensor& x) { return x * x; }},
      {"W x", [](Network& net, const Tensor& x) { return affine(net.linear(6, 6), x); }},
      {"norm x", [](Network& net, const Tensor& x) { return norm(net.layer_norm(6, 1e-2), x); }},
      {"attention x", [](Network&, const Tensor& x) { return attention(x, x, x, 2); }},
      {"mean x", [](Network&, const Tensor& x) { return mean_over_positions(x); }},
  };
  return all;
}

using Source = std::function<Tensor(Network&)>;
const std::vector<std::pair<std::string, Source>>& sources() {
  static const std::vector<std::pair<std::string, Source>> all = {
      {"features", [](Network& net) { return net.features(6); }},
      {"embed", [](Network& net) { return net.embed(net.table(5, 3), 2); }},
      {"affine", [](Network& net) { return affine(net.linear(3, 6), net.features(3)); }},
      {"tanh of affine", [](Network& net) { return tanh(affine(net.linear(3, 6), net.features(3))); }},
      {"gelu of affine", [](Network& net) { return gelu(affine(net.linear(3, 6), net.features(3))); }},
      {"norm of affine",
       [](Network& net) { return norm(net.layer_norm(6), affine(net.linear(3, 6), net.features(3))); }},
      {"sum",
       [](Network& net) {
         const Tensor x = net.features(3);
         return affine(net.linear(3, 6), x) + affine(net.linear(3, 6), x);
       }},
  };
  return all;
}

// Two uses of one tensor, joined by a sum or a product, in every order.
TEST(NetworkReuse, TensorReadByTwoOperationsMatchesTwin) {
  for (const auto& [source_name, source] : sources())
    for (const auto& [first_name, first] : uses())
      for (const auto& [second_name, second] : uses())
        for (const bool product : {false, true}) {
          SCOPED_TRACE(source_name + ": (" + first_name + (product ? ") * (" : ") + (") + second_name + ")");
          Network net(3);
          const Tensor x = source(net), a = first(net, x), b = second(net, x);
          custom_loss(product ? a * b : a + b, log_cosh_loss);
          expect_agrees(net, {.counts = {1, 3}, .micro_batches = {1, 2}});
        }
}

// A sum whose result and operand are read again together, as in residual blocks.
TEST(NetworkReuse, SumsReadWithOperandsMatchTwin) {
  for (const auto& [first_name, first] : uses())
    for (const auto& [second_name, second] : uses()) {
      SCOPED_TRACE(first_name + ", " + second_name);
      Network net(2);
      const Tensor x = affine(net.linear(3, 6), net.features(3));
      const Tensor y = x + first(net, x), z = y + second(net, y);
      custom_loss(z * x + y, log_cosh_loss);
      expect_agrees(net, {.counts = {1, 3}, .micro_batches = {1, 2}});
    }
}

// A branch from x is read before or after it is added to x. In some cases x is read once more.
TEST(NetworkReuse, BranchesReadWithSumsMatchTwin) {
  for (const auto& [branch_name, branch] : uses())
    for (const auto& [use_name, use] : uses())
      for (const bool before : {false, true})
        for (const bool again : {false, true})
          for (const bool swapped : {false, true}) {
            SCOPED_TRACE(branch_name + ", then " + use_name + (before ? ", before" : "") +
                         (again ? ", again" : ""));
            Network net(2);
            const Tensor x = affine(net.linear(3, 6), net.features(3)), y = branch(net, x);
            const Tensor early = before ? use(net, y) : x;
            const Tensor z = swapped ? y + x : x + y;
            const Tensor late = before ? early : use(net, y);
            const Tensor sum = affine(net.linear(6, 6), z) + late;
            custom_loss(again ? sum * x : sum, log_cosh_loss);
            expect_agrees(net, {.counts = {1, 3}, .micro_batches = {1, 2}});
          }
}

// The backward pass of an activation may overwrite the gradient of the sum, which the earlier layer still
// reads.
TEST(NetworkReuse, SumOfLayerAndInPlaceActivationMatchesTwin) {
  for (const bool swapped : {false, true})
    for (const bool first : {false, true}) {
      SCOPED_TRACE(std::string(swapped ? "swapped" : "") + (first ? " first" : ""));
      Network net(2);
      const Tensor x = tanh(affine(net.linear(3, 6), net.features(3)));
      Tensor plain, bent;
      if (first) bent = tanh(affine(net.linear(6, 6), x));
      plain = affine(net.linear(6, 6), x);
      if (!first) bent = tanh(affine(net.linear(6, 6), x));
      custom_loss(swapped ? bent + plain : plain + bent, log_cosh_loss);
      expect_agrees(net, {.counts = {1, 3}, .micro_batches = {1, 2}});
    }
}

TEST(NetworkReuse, ChainedUsesAtOnePositionMatchTwin) {
  for (const auto& [source_name, source] : sources())
    for (const auto& [name, use] : uses()) {
      SCOPED_TRACE(source_name + ", " + name);
      Network net;
      const Tensor x = source(net);
      cross_entropy(use(net, use(net, x)) + x);
      expect_agrees(net, {.counts = {1, 2, 5, 17}, .micro_batches = {0, 1, 4}});
    }
}

TEST(NetworkReuse, LongSumMatchesTwin) {
  Network net(2);
  Tensor x = affine(net.linear(3, 4), net.features(3));
  std::vector<Tensor> all = {x};
  for (int i = 0; i < 6; ++i) all.push_back(i % 2 == 0 ? tanh(all.back()) : all[i / 2] + all.back());
  for (const Tensor& each : all) x = x + each;
  custom_loss(x + x, log_cosh_loss);
  expect_agrees(net);
}

TEST(NetworkReuse, LinearLayerReadTwiceMatchesTwin) {
  for (const std::size_t positions : {1, 3, 8}) {
    Network net(positions);
    const Linear layer = net.linear(5, 5);
    const Tensor x = affine(layer, net.features(5));
    cross_entropy(affine(layer, tanh(affine(layer, x))) + x);
    expect_agrees(net, {.counts = {1, 2, 5, 17}, .micro_batches = {0, 1, 4}});
  }
}

TEST(NetworkReuse, TableReadByTwoEmbeddingsMatchesTwin) {
  for (const std::size_t positions : {1, 4}) {
    Network net(positions);
    const Table table = net.table(7, 6);
    const Tensor x = net.embed(table), y = net.embed(table);
    cross_entropy(affine(net.linear(6, 3), x * tanh(affine(net.linear(6, 6), y))));
    expect_agrees(net);
  }
}

TEST(NetworkReuse, TableOfLettersAndPositionsMatchesTwin) {
  Network net(4);
  const Table table = net.table(4, 3);
  cross_entropy(net.embed(table, table));
  expect_agrees(net);
}

TEST(NetworkReuse, NormAndConvolutionReadTwiceMatchTwin) {
  Network net;
  const LayerNorm scale = net.layer_norm(16, 1e-2);
  const Convolution filter = net.convolution(1, 1, 3, 1);
  const Tensor x = norm(scale, convolve(filter, net.features(TensorShape{1, 4, 4})));
  cross_entropy(convolve(filter, norm(scale, tanh(x))));
  expect_agrees(net);
}

TEST(NetworkReuse, FeatureLayerReadTwiceMatchesTwin) {
  Network net;
  const FeatureLinear layer = net.feature_linear(9, 5);
  cross_entropy(net.affine(layer) * tanh(net.affine(layer)));
  expect_agrees(net, {.counts = {1, 4, 17}, .micro_batches = {0, 1, 4}});
}

// Tied embeddings: the same numbers are a table of words and the weights of the last layer.
TEST(NetworkReuse, TableReadAsLinearLayerMatchesTwin) {
  Network net(3);
  const Table table = net.table(8, 5);
  const Linear tied{.first = table.first, .in = 5, .out = 8, .bias = false, .network = table.network};
  cross_entropy(affine(tied, tanh(net.embed(table))));
  expect_agrees(net, {.counts = {1, 4, 9}, .micro_batches = {0, 1, 4}});
}

// Three layers read overlapping parts of one range.
TEST(NetworkReuse, OverlappingRangesMatchTwin) {
  Network net(2);
  const Linear layer = net.linear(4, 6, false);  // 24 numbers
  const NetworkId own = layer.network;
  const Linear early{.first = layer.first + 2, .in = 4, .out = 1, .bias = false, .network = own},
      late{.first = layer.first + 12, .in = 4, .out = 3, .bias = false, .network = own};
  const Tensor x = net.features(4);
  const Tensor y = tanh(affine(net.linear(1, 3), affine(early, x)));
  cross_entropy(affine(net.linear(6, 3), affine(layer, x)) * y + affine(late, x));
  expect_agrees(net);
}

TEST(NetworkReuse, UnreadTensorsMatchTwin) {
  Network net(2);
  const Linear unused = net.linear(3, 3), used = net.linear(3, 3);
  const Table never = net.table(2, 2);
  EXPECT_EQ(never.first, 24u);
  const Tensor x = net.features(3);
  const Tensor dead = tanh(affine(unused, x));
  norm(net.layer_norm(3), dead + x);
  cross_entropy(affine(used, x));
  expect_agrees(net);
}

TEST(NetworkReuse, DeadEndsMatchTwin) {
  Network net(2);
  const Tensor x = affine(net.linear(3, 4), net.features(3)), y = tanh(x);
  attention(y, x, y, 2);  // reads what the loss reads, but does not lead to the loss
  EXPECT_EQ((gelu(x) * x).shape(), x.shape());
  cross_entropy(affine(net.linear(4, 3), y));
  expect_agrees(net);
}

TEST(NetworkReuse, TwoInputsMatchTwin) {
  Network net(3);
  const Tensor words = net.embed(net.table(6, 4)), numbers = net.features(5), again = net.features(5);
  const Tensor x = words * affine(net.linear(5, 4), numbers) + affine(net.linear(5, 4), again * numbers);
  cross_entropy(x);
  expect_agrees(net);

  Network sparse;
  const Tensor a = sparse.affine(sparse.feature_linear(8, 4)),
               b = affine(sparse.linear(5, 4), sparse.features(5)), c = sparse.embed(sparse.table(3, 2), 2);
  cross_entropy(a * b + tanh(c) * a);
  expect_agrees(sparse, {.counts = {1, 3, 6, 17}, .micro_batches = {0, 1, 4}});
}

}  // namespace
}  // namespace gradwire
