#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "engine/client_objectives.h"
#include "engine/oracles/logistic.h"
#include "engine/problems/linear_model.h"

namespace gradwire {

inline std::span<const std::string_view> words_of(LinearLoss) {
  static constexpr auto words = std::to_array<std::string_view>({"logistic", "sigmoid_squared"});
  return words;
}

struct Logistic : LinearModel, LinearConstants<Logistic> {
  static constexpr ProblemTraits traits{
      .name = "logistic",
      .summary =
          "mean_j log(1 + exp(-b_j a_j^T x)), two labels; loss = \"sigmoid_squared\": mean_j (1 - "
          "sigma(b_j a_j^T x))^2",
      .has_classes = true};
  LinearLoss loss = LinearLoss::kLogistic;

  static void fields(auto& self, auto&& visit) {
    LinearModel::fields<Logistic>(self, visit);
    visit("loss", self.loss,
          "loss of a margin z: `logistic` is log(1 + e^-z), `sigmoid_squared` is (1 - sigma(z))^2, which is "
          "not convex",
          {.quiet = true});
  }
  using LinearModel::check;
  void check(const DataSchema& schema) const;
  LossCurvature curvature() const;
  template <class Real>
  std::unique_ptr<ClientObjectives<Real>> client_objectives(const DataSchema& schema, SharedSamples samples,
                                                            const AllClients& all) const {
    using Oracle = LogisticOracle<Real>;
    return std::make_unique<ClientObjectivesOf<Real, Oracle>>(
        Oracle(with_features(schema, std::move(samples)), dim(schema), schema.labels, regularizer, lambda,
               loss, all.kernels));
  }
};

}  // namespace gradwire
