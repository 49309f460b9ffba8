#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradwire/network.h"

namespace gradwire {

struct LenetShape {
  static constexpr std::size_t kFilterSize = 5, kPoolSize = 2;

  TensorShape image{1, 28, 28};
  std::vector<std::uint32_t> filters = {6, 16};   // filters of each convolution; a pooling layer follows each
  std::vector<std::uint32_t> hidden = {120, 84};  // widths of the fully connected layers
  std::size_t classes = 10;
  Activation activation = Activation::kRelu;

  // Returns the shape after the last pooling layer. Its size is 0 if `image` is too small for so many
  // convolutions.
  TensorShape pooled() const;
};

// Makes a classifier of images: convolutions 5 x 5 with max pooling 2 x 2, then fully connected layers (after
// LeCun et al., Proceedings of the IEEE 86, 1998). Reads Example::features. Parameters in the order of the
// layers: weights, bias.
Network lenet(const LenetShape& shape = {});

}  // namespace gradwire
