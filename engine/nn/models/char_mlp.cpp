#include "engine/nn/models/char_mlp.h"

namespace gradwire {

Network char_mlp(const CharMlpShape& shape) {
  Network net;
  const Table letters = net.table(shape.vocabulary, shape.width);
  Tensor x = net.embed(letters, shape.context);
  for (const std::uint32_t width : shape.hidden)
    x = activation(shape.activation, affine(net.linear(x.shape().size(), width), x));
  const Tensor logits = affine(net.linear(x.shape().size(), shape.vocabulary), x);
  cross_entropy(shape.tanh_logits ? tanh(logits) : logits);
  return net;
}

}  // namespace gradwire
