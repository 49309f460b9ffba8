#include "engine/nn/models/mlp.h"

namespace gradwire {

Network mlp(const MlpShape& shape) {
  Network net;
  std::size_t width = shape.hidden.empty() ? shape.classes : shape.hidden.front();
  Tensor x = net.affine(net.feature_linear(shape.inputs, width));
  for (std::size_t layer = 1; layer <= shape.hidden.size(); ++layer) {
    const std::size_t in = width;
    width = layer < shape.hidden.size() ? shape.hidden[layer] : shape.classes;
    x = affine(net.linear(in, width), activation(shape.activation, x));
  }
  cross_entropy(x);
  return net;
}

}  // namespace gradwire
