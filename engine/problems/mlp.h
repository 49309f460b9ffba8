#pragma once

#include <memory>
#include <utility>

#include "engine/nn/models/mlp.h"
#include "engine/problems/network_problem.h"

namespace gradwire {

struct Mlp : NetworkProblem<Mlp> {
  static constexpr ProblemTraits traits{
      .name = "mlp",
      .summary = "softmax cross-entropy of a fully connected network; hidden = [] is softmax regression",
      .has_classes = true,
      .is_network = true};
  RowsData rows;
  MlpShape shape;  // inputs and classes come from the data
  ActivationSettings activations;

  static void fields(auto& self, auto&& visit) {
    RowsData::fields<Mlp>(self.rows, visit);
    visit("hidden", self.shape.hidden, "widths of the hidden layers; [] is softmax regression",
          {.low = 1, .high = kMaxWidth});
    visit("activation", self.shape.activation, "activation function between layers",
          {.idle_by = idle_if(self.shape.hidden.empty(), "hidden")});
    ActivationSettings::fields(self.activations, visit);
  }
  void check() const { rows.check(); }
  void check(const DataSchema& schema) const {
    (void)rows.features(schema);
    check_classes(traits.name, schema);
    check_widths("hidden", shape.hidden);
    check_activation(shape.activation);
  }
  Network network(const DataSchema& schema) const {
    MlpShape whole = shape;
    whole.inputs = rows.features(schema);
    whole.classes = schema.labels.size();
    return mlp(whole);
  }
  template <class Real>
  std::unique_ptr<const Examples<Real>> samples(const DataSchema& schema, Dataset&& data) const {
    return std::make_unique<SparseSamples<Real>>(std::move(data), rows.features(schema), schema.labels);
  }
};

}  // namespace gradwire
