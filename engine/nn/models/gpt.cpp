#include "engine/nn/models/gpt.h"

namespace gradwire {

Network gpt(const GptShape& shape) {
  const std::size_t width = shape.width, inner = 4 * width;
  Network net(shape.context);
  const Table letters = net.table(shape.vocabulary, width);
  const Table positions = net.table(shape.context, width);
  Tensor x = net.embed(letters, positions);
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    const Linear key = net.linear(width, width, false), query = net.linear(width, width, false),
                 value = net.linear(width, width, false);
    const Linear project = net.linear(width, width), up = net.linear(width, inner),
                 down = net.linear(inner, width);
    const LayerNorm norm1 = net.layer_norm(width, shape.epsilon),
                    norm2 = net.layer_norm(width, shape.epsilon);
    const Tensor u = norm(norm1, x);
    // These are named because C++ may evaluate arguments in any order, and operations are recorded when they
    // run.
    const Tensor k = affine(key, u), q = affine(query, u), v = affine(value, u);
    x = x + affine(project, attention(k, q, v, shape.heads));
    x = x + affine(down, activation(shape.activation, affine(up, norm(norm2, x))));
  }
  const Tensor logits = affine(net.linear(width, shape.vocabulary), x);
  cross_entropy(shape.tanh_logits ? tanh(logits) : logits);
  return net;
}

}  // namespace gradwire
