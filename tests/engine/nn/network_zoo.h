// Small networks that together have every operation, for tests of other features.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gradwire/network.h"

namespace gradwire {

struct NamedNetwork {
  std::string name;
  Network network;
};

// A smooth loss of all its arguments: sum over c of log cosh(output_c - target_c) / (1 + label).
inline double log_cosh_loss(std::span<const double> output, std::size_t label, std::span<const double> target,
                            std::span<double> derivative) {
  const double weight = 1 / (1.0 + static_cast<double>(label));
  double sum = 0;
  for (std::size_t c = 0; c < output.size(); ++c) {
    const double distance = output[c] - (target.empty() ? 0 : target[c]);
    sum += weight * (std::abs(distance) + std::log1p(std::exp(-2 * std::abs(distance))) - std::log(2.0));
    derivative[c] = weight * std::tanh(distance);
  }
  return sum;
}

inline Network zoo_letters() {
  Network net;
  const Table table = net.table(9, 5);
  const Linear first = net.linear(4 * 5, 13), second = net.linear(13, 9);
  cross_entropy(tanh(affine(second, tanh(affine(first, net.embed(table, 4))))));
  return net;
}

inline Network zoo_transformer(std::size_t positions, std::size_t width, std::size_t heads,
                               bool causal = true) {
  Network net(positions);
  const Table letters = net.table(7, width), places = net.table(positions, width);
  Tensor x = net.embed(letters, places);
  for (int layer = 0; layer < 2; ++layer) {
    const Linear key = net.linear(width, width, false), query = net.linear(width, width, false),
                 value = net.linear(width, width, false);
    const Linear project = net.linear(width, width), up = net.linear(width, 2 * width),
                 down = net.linear(2 * width, width);
    const LayerNorm norm1 = net.layer_norm(width, 1e-2), norm2 = net.layer_norm(width, 1e-2);
    const Tensor u = norm(norm1, x);
    // Named, because operations are recorded when they run, and compilers order arguments differently.
    const Tensor k = affine(key, u), q = affine(query, u), v = affine(value, u);
    x = x + affine(project, attention(k, q, v, heads, causal));
    x = x + affine(down, gelu(affine(up, norm(norm2, x))));
  }
  cross_entropy(affine(net.linear(width, 7), x));
  return net;
}

inline Network zoo_image() {
  Network net;
  const Tensor image = net.features(TensorShape{2, 7, 6});
  Tensor x = max_pool(tanh(convolve(net.convolution(2, 3, 3, 1), image)), 2);
  x = average_pool(sigmoid(convolve(net.convolution(3, 5, 2, 1), x)), 2);
  cross_entropy(affine(net.linear(x.shape().size(), 4), x));
  return net;
}

inline Network zoo_sparse() {
  Network net;
  const FeatureLinear first = net.feature_linear(11, 6);
  cross_entropy(affine(net.linear(6, 3), tanh(net.affine(first))));
  return net;
}

// Makes a network with parameters read twice, a tensor that nothing reads, two inputs and a custom loss.
inline Network zoo_shared() {
  Network net(3);
  const Table table = net.table(6, 5);
  const Linear shared = net.linear(5, 5), mix = net.linear(4, 5);
  const Tensor letters = net.embed(table);
  const Tensor x = tanh(affine(shared, letters)) + affine(mix, net.features(4));
  affine(shared, x);
  const Tensor y = sigmoid(affine(shared, x)) * x;
  custom_loss(y + mean_over_positions(y) * x, log_cosh_loss);
  return net;
}

inline Network zoo_regression() {
  Network net(2);
  const Tensor x = affine(net.linear(3, 7), net.features(3));
  mean_squared_error(affine(net.linear(7, 2), x * sigmoid(x)));
  return net;
}

inline std::vector<NamedNetwork> network_zoo() {
  std::vector<NamedNetwork> all;
  all.push_back({"letters", zoo_letters()});
  all.push_back({"transformer", zoo_transformer(5, 6, 2)});
  all.push_back({"transformer without order", zoo_transformer(8, 4, 1, false)});
  all.push_back({"image", zoo_image()});
  all.push_back({"sparse", zoo_sparse()});
  all.push_back({"shared", zoo_shared()});
  all.push_back({"regression", zoo_regression()});
  return all;
}

}  // namespace gradwire
