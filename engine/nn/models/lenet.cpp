#include "engine/nn/models/lenet.h"

namespace gradwire {

TensorShape LenetShape::pooled() const {
  TensorShape x = image;
  for (const std::uint32_t count : filters) {
    if (x.height < kFilterSize || x.width < kFilterSize) return {0, 0, 0};
    x = {count, (x.height - kFilterSize + 1) / kPoolSize, (x.width - kFilterSize + 1) / kPoolSize};
  }
  return x;
}

Network lenet(const LenetShape& shape) {
  Network net;
  Tensor x = net.features(shape.image);
  for (const std::uint32_t count : shape.filters) {
    const Convolution filters = net.convolution(x.shape().channels, count, LenetShape::kFilterSize);
    x = max_pool(activation(shape.activation, convolve(filters, x)), LenetShape::kPoolSize);
  }
  for (const std::uint32_t width : shape.hidden)
    x = activation(shape.activation, affine(net.linear(x.shape().size(), width), x));
  cross_entropy(affine(net.linear(x.shape().size(), shape.classes), x));
  return net;
}

}  // namespace gradwire
