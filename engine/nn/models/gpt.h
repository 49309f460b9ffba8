#pragma once

#include <cstddef>

#include "gradwire/network.h"

namespace gradwire {

struct GptShape {
  std::size_t vocabulary = 65;
  std::size_t context = 8;  // positions; each predicts its next letter from the letters up to it
  std::size_t width = 24;   // width at each position; 4 times as wide inside the feed-forward layers
  std::size_t layers = 6;
  std::size_t heads = 6;                      // divides the width
  Activation activation = Activation::kRelu;  // activation of the feed-forward layers
  double epsilon = 1e-5;                      // epsilon of the layer norms
  bool tanh_logits = true;  // keeps the outputs within -1 and 1, and so the loss away from 0
};

// Makes a transformer that predicts the next letter at each position, with a layer norm before each block
// (Radford et al., "Language models are unsupervised multitask learners", 2019). It reads `context` tokens of
// Example::tokens. Parameters: tokens (vocabulary, width), positions (context, width); per layer key, query,
// value (width, width), projection, up, down (weights, bias), both norms (gain, bias); head (weights, bias).
Network gpt(const GptShape& shape = {});

}  // namespace gradwire
