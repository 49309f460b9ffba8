// Random samples and parameters for any network.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/random.h"
#include "engine/nn/executor.h"
#include "engine/nn/network_ops.h"

namespace gradwire {

// Samples with everything that the network reads. All numbers are floats, so both types see the same ones.
template <class Real>
class RandomSamples {
 public:
  RandomSamples(const Network& network, std::size_t count, std::uint64_t seed, double scale = 1) {
    for (std::size_t k = 0; k < count; ++k) {
      Random random(seed, "network samples", k);
      samples_.push_back({});
      for (const NetworkOp& op : network.content().ops)
        draw(network, op, random, scale, k == 2, samples_.back());
    }
  }

  Example<Real> operator[](std::size_t k) const {
    const Sample& s = samples_[k];
    return {s.tokens, s.features, s.index, s.value, s.labels, s.targets};
  }
  typename Executor<Real>::ExampleAt at() const {
    return [this](std::size_t k) { return (*this)[k]; };
  }

 private:
  struct Sample {
    std::vector<Token> tokens, labels;
    std::vector<Real> features, value, targets;
    std::vector<std::uint32_t> index;
  };

  static void fill(std::vector<Token>& tokens, std::size_t count, std::size_t end, Random& random) {
    tokens.resize(count, std::numeric_limits<Token>::max());
    for (Token& token : tokens) token = std::min(token, static_cast<Token>(random.below(end)));
  }
  static void fill(std::vector<Real>& numbers, std::size_t count, double scale, Random& random) {
    numbers.resize(count);
    for (Real& number : numbers) number = static_cast<float>(scale * random.normal());
  }

  static void draw(const Network& network, const NetworkOp& op, Random& random, double scale, bool empty,
                   Sample& s) {
    const std::size_t width = network.content().nodes[op.out].size(), positions = network.positions();
    const std::size_t read = op.in[0] == NetworkOp::kNone ? 0 : network.content().nodes[op.in[0]].size();
    if (op.kind == OpKind::kEmbed)
      fill(s.tokens, positions * op.tokens, op.count[0] / (width / op.tokens), random);
    else if (op.kind == OpKind::kFeatures)
      fill(s.features, positions * width, scale, random);
    else if (op.kind == OpKind::kSparseFeatures && s.index.empty()) {
      for (std::uint32_t k = 0; k < op.count[0] / width; ++k)
        if (!empty && random.uniform() < 0.4) s.index.push_back(k);
      fill(s.value, s.index.size(), scale, random);
    } else if (op.kind == OpKind::kCrossEntropy || op.kind == OpKind::kCustomLoss)
      fill(s.labels, positions, read, random);
    if (op.kind == OpKind::kSquaredError || op.kind == OpKind::kCustomLoss)
      fill(s.targets, positions * read, 1, random);
  }

  std::vector<Sample> samples_;
};

// The same samples as the data of an oracle.
template <class Real>
class DrawnExamples final : public Examples<Real> {
 public:
  DrawnExamples(const Network& network, std::size_t count) : samples_(network, count, 4), count_(count) {}
  std::size_t size() const override { return count_; }
  Example<Real> operator[](std::size_t k) const override { return samples_[k]; }

 private:
  RandomSamples<Real> samples_;
  std::size_t count_;
};

// Returns the initial parameters of the network, slightly perturbed so that no bias is 0 and no gain is 1.
// Every value is exactly representable as a float.
inline std::vector<double> random_parameters(const Network& network, std::uint64_t seed) {
  std::vector<double> x = network.start(seed);
  Random random(seed, "network test point");
  for (double& number : x) number = static_cast<float>(number + 0.2 * random.normal());
  return x;
}

}  // namespace gradwire
