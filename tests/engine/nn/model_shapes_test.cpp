// The models of engine/nn/models: their parameters and the order of the parameters.
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/nn/models/char_mlp.h"
#include "engine/nn/models/gpt.h"
#include "engine/nn/models/lenet.h"
#include "engine/nn/models/mlp.h"
#include "engine/nn/network_ops.h"

namespace gradwire {
namespace {

using Range = std::pair<std::size_t, std::size_t>;  // first, count

// Returns the parameter ranges of all operations of one kind, in order, without empty ranges.
std::vector<Range> ranges(const Network& network, OpKind kind) {
  std::vector<Range> all;
  for (const NetworkOp& op : network.content().ops) {
    if (op.kind != kind) continue;
    for (const int k : {0, 1})
      if (op.count[k] > 0) all.emplace_back(op.first[k], op.count[k]);
  }
  return all;
}

std::vector<OpKind> kinds(const Network& network) {
  std::vector<OpKind> all;
  for (const NetworkOp& op : network.content().ops) all.push_back(op.kind);
  return all;
}

// Expects that exactly one operation reads each coordinate.
void expect_all_read_once(const Network& network) {
  std::map<std::size_t, std::size_t> taken;
  for (const NetworkOp& op : network.content().ops)
    for (const int k : {0, 1})
      EXPECT_TRUE(op.count[k] == 0 || taken.emplace(op.first[k], op.count[k]).second) << "shared";
  std::size_t next = 0;
  for (const auto& [first, count] : taken) {
    EXPECT_EQ(first, next);
    next = first + count;
  }
  EXPECT_EQ(next, network.dim());
}

TEST(CharMlp, MatchesMlpTaskForEveryWidth) {
  for (const std::uint32_t e : {4u, 16u, 32u, 64u, 128u, 512u, 1024u}) {
    const Network network = char_mlp({.hidden = {e}});
    EXPECT_EQ(network.dim(), 1755u + 1052u * e);
    EXPECT_EQ(network.positions(), 1u);
    EXPECT_EQ(kinds(network),
              (std::vector<OpKind>{OpKind::kEmbed, OpKind::kAffine, OpKind::kActivation, OpKind::kAffine,
                                   OpKind::kActivation, OpKind::kCrossEntropy}));
    EXPECT_EQ(ranges(network, OpKind::kEmbed), (std::vector<Range>{{0, 27 * 64}}));
    const std::size_t w1 = 27 * 64, b1 = w1 + e * 1024, w2 = b1 + e, b2 = w2 + 27 * e;
    EXPECT_EQ(ranges(network, OpKind::kAffine),
              (std::vector<Range>{{w1, e * 1024}, {b1, e}, {w2, 27 * e}, {b2, 27}}));
    for (const NetworkOp& op : network.content().ops) EXPECT_EQ(op.activation, Activation::kTanh);
    expect_all_read_once(network);
  }
}

TEST(CharMlp, AcceptsMoreLayersAndPlainLogits) {
  const Network network = char_mlp({.vocabulary = 5,
                                    .context = 3,
                                    .width = 2,
                                    .hidden = {7, 4},
                                    .activation = Activation::kRelu,
                                    .tanh_logits = false});
  EXPECT_EQ(network.dim(), 5u * 2 + (6 * 7 + 7) + (7 * 4 + 4) + (4 * 5 + 5));
  EXPECT_EQ(kinds(network),
            (std::vector<OpKind>{OpKind::kEmbed, OpKind::kAffine, OpKind::kActivation, OpKind::kAffine,
                                 OpKind::kActivation, OpKind::kAffine, OpKind::kCrossEntropy}));
  expect_all_read_once(network);
}

TEST(Gpt, Has46289Parameters) {
  const Network network = gpt();
  EXPECT_EQ(network.dim(), 46289u);
  EXPECT_EQ(network.positions(), 8u);
  EXPECT_EQ(ranges(network, OpKind::kEmbed), (std::vector<Range>{{0, 65 * 24}, {65 * 24, 8 * 24}}));
  std::vector<Range> affine, norm;
  std::size_t at = 65 * 24 + 8 * 24;
  const auto take = [&at](std::size_t count) { return Range{std::exchange(at, at + count), count}; };
  for (int layer = 0; layer < 6; ++layer) {
    std::vector<Range> own;
    for (const std::size_t count : {576, 576, 576, 576, 24, 2304, 96, 2304, 24}) own.push_back(take(count));
    affine.insert(affine.end(), own.begin(), own.end());
    for (int k = 0; k < 4; ++k) norm.push_back(take(24));  // gain, bias of both
  }
  affine.push_back(take(65 * 24));
  affine.push_back(take(65));
  EXPECT_EQ(ranges(network, OpKind::kAffine), affine);
  // Gain and bias of a norm are one range or two.
  std::size_t normed = 0;
  for (const Range& range : ranges(network, OpKind::kNorm)) normed += range.second;
  EXPECT_EQ(normed, 6u * 4 * 24);
  EXPECT_EQ(ranges(network, OpKind::kNorm).front().first, norm.front().first);
  expect_all_read_once(network);
}

TEST(Gpt, RunsBlocksInOrder) {
  const Network network = gpt({.layers = 1, .epsilon = 0});
  EXPECT_EQ(kinds(network),
            (std::vector<OpKind>{OpKind::kEmbed, OpKind::kNorm, OpKind::kAffine, OpKind::kAffine,
                                 OpKind::kAffine, OpKind::kAttention, OpKind::kAffine, OpKind::kAdd,
                                 OpKind::kNorm, OpKind::kAffine, OpKind::kActivation, OpKind::kAffine,
                                 OpKind::kAdd, OpKind::kAffine, OpKind::kActivation, OpKind::kCrossEntropy}));
  for (const NetworkOp& op : network.content().ops) {
    EXPECT_EQ(op.epsilon, 0);
    if (op.kind == OpKind::kAttention) {
      EXPECT_EQ(op.heads, 6u);
      EXPECT_TRUE(op.causal);
    }
  }
  EXPECT_EQ(network.content().ops[10].activation, Activation::kRelu);
  EXPECT_EQ(network.content().ops[14].activation, Activation::kTanh);
  EXPECT_EQ(gpt({.tanh_logits = false}).content().ops.size() + 1, gpt().content().ops.size());
}

TEST(Lenet, HasPublishedNumberOfParameters) {
  EXPECT_EQ(lenet().dim(), 44426u);                        // 28 x 28, no padding
  EXPECT_EQ(lenet({.image = {1, 32, 32}}).dim(), 61706u);  // 32 x 32
  EXPECT_EQ(lenet({.image = {3, 32, 32}}).dim(), 62006u);  // with three colours
  expect_all_read_once(lenet());
  EXPECT_EQ(kinds(lenet()),
            (std::vector<OpKind>{OpKind::kFeatures, OpKind::kConvolution, OpKind::kActivation,
                                 OpKind::kMaxPool, OpKind::kConvolution, OpKind::kActivation,
                                 OpKind::kMaxPool, OpKind::kAffine, OpKind::kActivation, OpKind::kAffine,
                                 OpKind::kActivation, OpKind::kAffine, OpKind::kCrossEntropy}));
}

TEST(Lenet, FitsAnyLargeEnoughImage) {
  const LenetShape digits{.image = {1, 8, 8}, .filters = {4}, .hidden = {}, .classes = 10};
  EXPECT_EQ(digits.pooled(), (TensorShape{4, 2, 2}));
  EXPECT_EQ(lenet(digits).dim(), 4u * 25 + 4 + 16 * 10 + 10);
  EXPECT_EQ((LenetShape{.image = {1, 6, 9}, .filters = {3}}.pooled()), (TensorShape{3, 1, 2}));
  EXPECT_EQ((LenetShape{.image = {1, 5, 9}, .filters = {3}}.pooled().size()), 0u);
  EXPECT_EQ((LenetShape{.image = {1, 8, 8}}.pooled().size()), 0u);
  EXPECT_EQ(LenetShape{}.pooled(), (TensorShape{16, 4, 4}));
}

TEST(Mlp, IsSoftmaxRegressionWithoutHiddenLayers) {
  const Network network = mlp({.inputs = 7, .hidden = {}, .classes = 3});
  EXPECT_EQ(network.dim(), 24u);
  EXPECT_EQ(kinds(network), (std::vector<OpKind>{OpKind::kSparseFeatures, OpKind::kCrossEntropy}));
  EXPECT_EQ(mlp({.inputs = 7, .hidden = {5, 4}, .classes = 3, .activation = Activation::kGelu}).dim(),
            7u * 5 + 5 + 5 * 4 + 4 + 4 * 3 + 3);
  expect_all_read_once(network);
}

}  // namespace
}  // namespace gradwire
