#pragma once

#include <cstddef>
#include <memory>

#include "engine/nn/models/char_mlp.h"
#include "engine/problems/network_problem.h"

namespace gradwire {

struct CharMlp : NetworkProblem<CharMlp> {
  static constexpr ProblemTraits traits{
      .name = "char_mlp",
      .summary =
          "the next letter of a name, from the `context` letters before it; a file with one name per line",
      .is_network = true};
  static constexpr TextForm kTextForm = TextForm::kNames;
  TextData text;
  CharMlpShape shape;  // the vocabulary comes from the data
  ActivationSettings activations;

  static void fields(auto& self, auto&& visit) {
    TextData::fields<CharMlp>(self.text, visit);
    visit("hidden", self.shape.hidden, "widths of the hidden layers", {.low = 1, .high = kMaxWidth});
    visit("activation", self.shape.activation, "activation function between layers");
    ActivationSettings::fields(self.activations, visit);
    visit("context", self.shape.context, "number of letters before the predicted one",
          {.low = 1, .high = kMaxContext});
    visit("width", self.shape.width, "length of the vector for a letter", {.low = 1, .high = kMaxWidth});
    visit("tanh_logits", self.shape.tanh_logits,
          "tanh on the outputs, which keeps the loss away from 0; false trains further");
  }
  void check() const;
  void check(const DataSchema& schema) const;
  std::size_t context() const { return shape.context; }
  Network network(const DataSchema& schema) const {
    CharMlpShape whole = shape;
    whole.vocabulary = schema.alphabet.size() + 1;
    return char_mlp(whole);
  }
  template <class Real>
  std::unique_ptr<const Examples<Real>> samples(const DataSchema& schema, const Windows& text) const {
    return text_samples<Real>(schema, text);
  }
};

}  // namespace gradwire
