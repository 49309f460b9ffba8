// The naive twin of engine/nn/executor.h. It runs any recorded network for one sample, number by number,
// directly from the definitions in include/gradwire/network.h. With V = double it computes values; with the
// scalar tape's Var it also computes gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/nn/example.h"
#include "engine/nn/network_ops.h"
#include "engine/tape/eager_tape.h"

namespace gradwire {

// Returns V(value) for a number that depends on no parameter. On a tape it is a leaf of the tape of `like`.
inline double naive_constant(double, double value) { return value; }
template <class T>
Var<T> naive_constant(const Var<T>& like, double value) {
  return like.tape().leaf(static_cast<typename Var<T>::Value>(value));
}
inline double naive_value(double x) { return x; }
template <class T>
double naive_value(const Var<T>& x) {
  return x.value();
}

template <class V, class Real>
class NaiveNetwork {
 public:
  using Numbers = std::vector<V>;

  // Runs everything up to the loss. All three arguments must outlive the twin. With a tape's Var, x must not
  // be empty.
  NaiveNetwork(const Network& network, std::span<const V> x, const Example<Real>& example)
      : network_(network), x_(x), example_(example), nodes_(network.content().nodes.size()) {
    for (const NetworkOp& op : network_.content().ops)
      if (op.kind < OpKind::kCrossEntropy) nodes_[op.out] = run(op);
  }

  // Returns a node's numbers, shape (positions, channels) or (positions, channels, height, width).
  const Numbers& node(std::size_t number) const { return nodes_[number]; }
  const Numbers& output() const { return nodes_[network_.content().ops.back().in[0]]; }

  // Returns the mean over the positions.
  V loss() {
    V sum = constant(0);
    for (std::size_t t = 0; t < positions(); ++t) sum = sum + loss_at(t, network_.content().ops.back());
    return sum / constant(static_cast<double>(positions()));
  }

 private:
  using Op = NetworkOp;

  V constant(double value) const { return naive_constant(x_.empty() ? V() : x_[0], value); }
  std::size_t positions() const { return network_.positions(); }
  const TensorShape& shape(std::uint32_t node) const { return network_.content().nodes[node]; }
  // Returns the channels of a vector, or all numbers of an image.
  std::size_t size(std::uint32_t node) const { return shape(node).size(); }

  Numbers run(const Op& op) {
    switch (op.kind) {
      case OpKind::kFeatures: return features();
      case OpKind::kSparseFeatures: return sparse_features(op);
      case OpKind::kEmbed: return embed(op);
      case OpKind::kAffine: return affine(op);
      case OpKind::kActivation: return activation(op);
      case OpKind::kAdd: return add(op);
      case OpKind::kMultiply: return multiply(op);
      case OpKind::kNorm: return norm(op);
      case OpKind::kAttention: return attention(op);
      case OpKind::kConvolution: return convolution(op);
      case OpKind::kMaxPool: return max_pool(op);
      case OpKind::kAveragePool: return average_pool(op);
      case OpKind::kMeanOverPositions: return mean_over_positions(op);
      default: throw std::logic_error("the naive twin does not know this operation");
    }
  }

  Numbers features() {
    Numbers y;
    for (const Real feature : example_.features) y.push_back(constant(static_cast<double>(feature)));
    return y;
  }

  Numbers sparse_features(const Op& op) {
    const std::size_t out = size(op.out);
    Numbers y(x_.begin() + op.first[1], x_.begin() + op.first[1] + out);
    for (std::size_t k = 0; k < example_.index.size(); ++k)
      for (std::size_t j = 0; j < out; ++j) {
        const V& weight = x_[op.first[0] + example_.index[k] * out + j];
        y[j] = y[j] + weight * constant(static_cast<double>(example_.value[k]));
      }
    return y;
  }

  Numbers embed(const Op& op) {
    const std::size_t width = size(op.out) / op.tokens;
    Numbers y;
    for (std::size_t t = 0; t < positions(); ++t)
      for (std::size_t k = 0; k < op.tokens; ++k)
        for (std::size_t c = 0; c < width; ++c) {
          V number = x_[op.first[0] + example_.tokens[t * op.tokens + k] * width + c];
          if (op.count[1] > 0) number = number + x_[op.first[1] + t * width + c];
          y.push_back(number);
        }
    return y;
  }

  Numbers affine(const Op& op) {
    const Numbers& x = nodes_[op.in[0]];
    const std::size_t in = size(op.in[0]), out = size(op.out);
    Numbers y;
    for (std::size_t t = 0; t < positions(); ++t)
      for (std::size_t j = 0; j < out; ++j) {
        V sum = op.count[1] > 0 ? x_[op.first[1] + j] : constant(0);
        for (std::size_t k = 0; k < in; ++k) sum = sum + x_[op.first[0] + j * in + k] * x[t * in + k];
        y.push_back(sum);
      }
    return y;
  }

  V activation(Activation function, const V& x) const {
    using std::exp, std::tanh;
    const V one = constant(1);
    switch (function) {
      case Activation::kTanh: return tanh(x);
      case Activation::kRelu: return naive_value(x) > 0 ? x : constant(0);
      case Activation::kSigmoid:  // two forms, so that exp never overflows
        if (naive_value(x) < 0) return exp(x) / (one + exp(x));
        return one / (one + exp(constant(0) - x));
      case Activation::kGelu: {
        const V inner = constant(std::sqrt(2 / std::acos(-1.0))) * (x + constant(0.044715) * x * x * x);
        return constant(0.5) * x * (one + tanh(inner));
      }
    }
    throw std::logic_error("the naive twin does not know this activation");
  }
  Numbers activation(const Op& op) {
    Numbers y;
    for (const V& x : nodes_[op.in[0]]) y.push_back(activation(op.activation, x));
    return y;
  }

  Numbers add(const Op& op) {
    const Numbers &a = nodes_[op.in[0]], &b = nodes_[op.in[1]];
    Numbers y;
    for (std::size_t i = 0; i < a.size(); ++i) y.push_back(a[i] + b[i]);
    return y;
  }
  Numbers multiply(const Op& op) {
    const Numbers &a = nodes_[op.in[0]], &b = nodes_[op.in[1]];
    Numbers y;
    for (std::size_t i = 0; i < a.size(); ++i) y.push_back(a[i] * b[i]);
    return y;
  }

  Numbers norm(const Op& op) {
    using std::sqrt;
    const Numbers& x = nodes_[op.in[0]];
    const std::size_t width = size(op.out);
    const V count = constant(static_cast<double>(width));
    Numbers y;
    for (std::size_t t = 0; t < positions(); ++t) {
      V sum = constant(0), squares = constant(0);
      for (std::size_t c = 0; c < width; ++c) sum = sum + x[t * width + c];
      const V mean = sum / count;
      for (std::size_t c = 0; c < width; ++c) {
        const V distance = x[t * width + c] - mean;
        squares = squares + distance * distance;
      }
      const V deviation = sqrt(squares / count + constant(op.epsilon));
      for (std::size_t c = 0; c < width; ++c) {
        const V &gain = x_[op.first[0] + c], &bias = x_[op.first[0] + width + c];
        y.push_back(gain * (x[t * width + c] - mean) / deviation + bias);
      }
    }
    return y;
  }

  Numbers attention(const Op& op) {
    using std::exp;
    const Numbers &key = nodes_[op.in[0]], &query = nodes_[op.in[1]], &value = nodes_[op.in[2]];
    const std::size_t width = size(op.out), slice = width / op.heads;
    const V scale = constant(1 / std::sqrt(static_cast<double>(slice)));
    Numbers y(positions() * width, constant(0));
    for (std::size_t first = 0; first < width; first += slice)
      for (std::size_t t = 0; t < positions(); ++t) {
        const std::size_t seen = op.causal ? t + 1 : positions();
        Numbers score;
        for (std::size_t u = 0; u < seen; ++u) {
          V product = constant(0);
          for (std::size_t c = first; c < first + slice; ++c)
            product = product + query[t * width + c] * key[u * width + c];
          score.push_back(product * scale);
        }
        const Numbers share = softmax(score);
        for (std::size_t u = 0; u < seen; ++u)
          for (std::size_t c = first; c < first + slice; ++c)
            y[t * width + c] = y[t * width + c] + share[u] * value[u * width + c];
      }
    return y;
  }

  // Returns the largest score, as a number without derivative. Subtracting one number from all scores does
  // not change softmax.
  V largest(const Numbers& x) const {
    double most = naive_value(x[0]);
    for (const V& number : x) most = std::max(most, naive_value(number));
    return constant(most);
  }
  Numbers softmax(const Numbers& score) const {
    using std::exp;
    const V most = largest(score);
    Numbers share;
    V sum = constant(0);
    for (const V& s : score) {
      share.push_back(exp(s - most));
      sum = sum + share.back();
    }
    for (V& s : share) s = s / sum;
    return share;
  }

  Numbers convolution(const Op& op) {
    const TensorShape &in = shape(op.in[0]), &out = shape(op.out);
    const Numbers& x = nodes_[op.in[0]];
    const std::size_t size = op.window;
    Numbers y;
    for (std::size_t t = 0; t < positions(); ++t)
      for (std::size_t o = 0; o < out.channels; ++o)
        for (std::size_t row = 0; row < out.height; ++row)
          for (std::size_t column = 0; column < out.width; ++column) {
            V sum = x_[op.first[1] + o];
            for (std::size_t i = 0; i < in.channels; ++i)
              for (std::size_t r = 0; r < size; ++r)
                for (std::size_t c = 0; c < size; ++c) {
                  const std::size_t a = row + r, b = column + c;  // in the padded image
                  if (a < op.padding || b < op.padding) continue;
                  if (a - op.padding >= in.height || b - op.padding >= in.width) continue;
                  const V& weight = x_[op.first[0] + ((o * in.channels + i) * size + r) * size + c];
                  sum = sum + weight * x[pixel(in, t, i, a - op.padding, b - op.padding)];
                }
            y.push_back(sum);
          }
    return y;
  }

  static std::size_t pixel(const TensorShape& s, std::size_t t, std::size_t channel, std::size_t row,
                           std::size_t column) {
    return ((t * s.channels + channel) * s.height + row) * s.width + column;
  }

  // Calls take(window) with the numbers of each square, in the order of the result.
  template <class Take>
  void for_each_square(const Op& op, Take&& take) {
    const TensorShape &in = shape(op.in[0]), &out = shape(op.out);
    const Numbers& x = nodes_[op.in[0]];
    for (std::size_t t = 0; t < positions(); ++t)
      for (std::size_t channel = 0; channel < out.channels; ++channel)
        for (std::size_t row = 0; row < out.height; ++row)
          for (std::size_t column = 0; column < out.width; ++column) {
            Numbers square;
            for (std::size_t r = 0; r < op.window; ++r)
              for (std::size_t c = 0; c < op.window; ++c)
                square.push_back(x[pixel(in, t, channel, row * op.window + r, column * op.window + c)]);
            take(square);
          }
  }
  Numbers max_pool(const Op& op) {
    Numbers y;
    for_each_square(op, [&](const Numbers& square) {
      V most = square[0];
      for (const V& number : square) {
        const double a = naive_value(number), b = naive_value(most);
        if (a > b || (std::isnan(a) && !std::isnan(b))) most = number;
      }
      y.push_back(most);
    });
    return y;
  }
  Numbers average_pool(const Op& op) {
    Numbers y;
    for_each_square(op, [&](const Numbers& square) {
      V sum = constant(0);
      for (const V& number : square) sum = sum + number;
      y.push_back(sum / constant(static_cast<double>(square.size())));
    });
    return y;
  }

  Numbers mean_over_positions(const Op& op) {
    const Numbers& x = nodes_[op.in[0]];
    const std::size_t width = size(op.out);
    Numbers y(x.size());
    for (std::size_t c = 0; c < width; ++c) {
      V sum = constant(0);
      for (std::size_t t = 0; t < positions(); ++t) sum = sum + x[t * width + c];
      for (std::size_t t = 0; t < positions(); ++t)
        y[t * width + c] = sum / constant(static_cast<double>(positions()));
    }
    return y;
  }

  V loss_at(std::size_t t, const Op& op) {
    const std::size_t width = size(op.in[0]);
    const Numbers x(output().begin() + t * width, output().begin() + (t + 1) * width);
    if (op.kind == OpKind::kCrossEntropy) return cross_entropy(x, example_.labels[t]);
    if (op.kind == OpKind::kSquaredError) return squared_error(x, t);
    if (op.kind == OpKind::kCustomLoss) return custom_loss(x, t, network_.content().losses[op.loss]);
    throw std::logic_error("the network has no loss");
  }
  V cross_entropy(const Numbers& x, std::size_t label) {
    using std::exp, std::log;
    const V most = largest(x);
    V sum = constant(0);
    for (const V& number : x) sum = sum + exp(number - most);
    return log(sum) - (x[label] - most);
  }
  V squared_error(const Numbers& x, std::size_t t) {
    V sum = constant(0);
    for (std::size_t c = 0; c < x.size(); ++c) {
      const V distance = x[c] - constant(static_cast<double>(example_.targets[t * x.size() + c]));
      sum = sum + distance * distance;
    }
    return sum / constant(static_cast<double>(x.size()));
  }
  V custom_loss(const Numbers& x, std::size_t t, const LossFunction& function) {
    std::vector<double> output, target, derivative(x.size());
    for (const V& number : x) output.push_back(naive_value(number));
    const std::size_t targets = example_.targets.size() / positions();
    for (std::size_t k = 0; k < targets; ++k)
      target.push_back(static_cast<double>(example_.targets[t * targets + k]));
    const double value =
        function(output, example_.labels.empty() ? 0 : example_.labels[t], target, derivative);
    V loss = constant(value);
    for (std::size_t c = 0; c < x.size(); ++c)
      loss = loss + (x[c] - constant(output[c])) * constant(derivative[c]);
    return loss;
  }

  const Network& network_;
  std::span<const V> x_;
  const Example<Real>& example_;
  std::vector<Numbers> nodes_;
};

template <class V, class Real>
V naive_loss(const Network& network, std::span<const V> x, const Example<Real>& example) {
  return NaiveNetwork<V, Real>(network, x, example).loss();
}

struct LossAndGradient {
  double loss = 0;
  std::vector<double> gradient;
};

// Returns loss and gradient of one sample, by the scalar tape. With Number = float every intermediate result
// is rounded to float.
template <class Number = double, class Real>
LossAndGradient naive_loss_and_gradient(const Network& network, std::span<const double> x,
                                        const Example<Real>& example) {
  if (x.empty()) return {naive_loss(network, x, example), {}};
  using V = Var<EagerTape<Number>>;
  // All calls use one tape: with sanitizers, a tape that grows each time takes half of a test's time.
  thread_local EagerTape<Number> tape;
  thread_local const auto empty = tape.checkpoint();
  tape.rewind(empty);
  std::vector<V> parameters;
  for (const double number : x) parameters.push_back(tape.leaf(static_cast<Number>(number)));
  const V loss = naive_loss(network, std::span<const V>(parameters), example);
  backward(loss);
  LossAndGradient result{naive_value(loss), {}};
  for (const V& parameter : parameters) result.gradient.push_back(tape.gradient(parameter));
  return result;
}

}  // namespace gradwire
