#pragma once

#include <cstddef>
#include <memory>

#include "engine/nn/models/gpt.h"
#include "engine/problems/network_problem.h"

namespace gradwire {

struct Gpt : NetworkProblem<Gpt> {
  static constexpr ProblemTraits traits{
      .name = "gpt",
      .summary = "a transformer that predicts the next letter at each of `context` positions of running text",
      .is_network = true};
  static constexpr TextForm kTextForm = TextForm::kRunning;
  TextData text;
  GptShape shape;  // the vocabulary comes from the data
  ActivationSettings activations;

  static void fields(auto& self, auto&& visit) {
    TextData::fields<Gpt>(self.text, visit);
    visit("activation", self.shape.activation, "activation function in the feed-forward layers");
    ActivationSettings::fields(self.activations, visit);
    visit("context", self.shape.context, "number of letters before the predicted one",
          {.low = 1, .high = kMaxContext});
    visit("width", self.shape.width,
          "length of the vector at each position; 4 times as many inside the feed-forward layers",
          {.low = 1, .high = kMaxWidth});
    visit("layers", self.shape.layers, "number of blocks of attention and feed-forward",
          {.low = 1, .high = kMaxLayers});
    visit("heads", self.shape.heads, "heads of the attention; divides width", {.low = 1, .high = kMaxWidth});
    visit("epsilon", self.shape.epsilon, "added to the variance in layer norms");
    visit("tanh_logits", self.shape.tanh_logits,
          "tanh on the outputs, which keeps the loss away from 0; false trains further");
  }
  void check() const;
  void check(const DataSchema& schema) const;
  std::size_t context() const { return shape.context; }
  Network network(const DataSchema& schema) const {
    GptShape whole = shape;
    whole.vocabulary = schema.alphabet.size();
    return gpt(whole);
  }
  template <class Real>
  std::unique_ptr<const Examples<Real>> samples(const DataSchema& schema, const Windows& text) const {
    return text_samples<Real>(schema, text);
  }
};

}  // namespace gradwire
