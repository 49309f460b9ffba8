#pragma once

#include <memory>
#include <utility>

#include "engine/client_objectives.h"
#include "engine/oracles/least_squares.h"
#include "engine/problems/linear_model.h"

namespace gradwire {

struct LeastSquares : LinearModel, LinearConstants<LeastSquares> {
  static constexpr ProblemTraits traits{.name = "least_squares",
                                        .summary = "||A_i x - y_i||^2 / (2 m_i), labels y_i"};

  static void fields(auto& self, auto&& visit) { LinearModel::fields<LeastSquares>(self, visit); }
  static LossCurvature curvature() { return {.largest = 1, .convex = true, .constant = true}; }
  template <class Real>
  std::unique_ptr<ClientObjectives<Real>> client_objectives(const DataSchema& schema, SharedSamples samples,
                                                            const AllClients& all) const {
    using Oracle = LeastSquaresOracle<Real>;
    return std::make_unique<ClientObjectivesOf<Real, Oracle>>(
        Oracle(with_features(schema, std::move(samples)), dim(schema), regularizer, lambda, all.kernels));
  }
};

}  // namespace gradwire
