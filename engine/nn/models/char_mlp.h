#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradwire/network.h"

namespace gradwire {

struct CharMlpShape {
  std::size_t vocabulary = 27;  // letters, and token 0 for the end of a name
  std::size_t context = 16;     // letters from which the next one is predicted
  std::size_t width = 64;       // width of a letter's vector
  std::vector<std::uint32_t> hidden = {128};
  Activation activation = Activation::kTanh;
  bool tanh_logits = true;  // keeps the outputs within -1 and 1, and so the loss away from 0
};

// Makes a model that predicts the next letter of a name: the neural language model of Bengio et al. (JMLR 3,
// 2003). It reads `context` tokens of Example::tokens. Parameters: letters (vocabulary, width), then weights
// (out, in) and bias of each layer.
Network char_mlp(const CharMlpShape& shape = {});

}  // namespace gradwire
