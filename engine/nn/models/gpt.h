#pragma once

#include <cstddef>

#include "engine/nn/network.h"

namespace gradwire {

struct GptShape {
  std::size_t vocabulary = 65;
  std::size_t context = 8;  // positions: each predicts its next letter from those up to it
  std::size_t width =
      24;  // of the vector at each position; the feed-forward layers are 4 times as wide inside
  std::size_t layers = 6;
  std::size_t heads = 6;                      // divides the width
  Activation activation = Activation::kRelu;  // of the feed-forward layers
  double epsilon = 1e-5;                      // of the layer norms
  bool tanh_logits = true;  // keeps the outputs within -1 and 1, and so the loss away from 0
};

// A transformer that predicts the next letter at each position, layer norms in front of each block (Radford
// et al., "Language models are unsupervised multitask learners", 2019). Reads Example::tokens, `context` of
// them. Parameters: tokens (vocabulary, width), positions (context, width); per layer key, query, value
// (width, width), projection, up, down (weights, bias), both norms (gain, bias); head (weights, bias).
Network gpt(const GptShape& shape = {});

}  // namespace gradwire
