#pragma once

#include <cstdint>
#include <memory>

#include "engine/oracle.h"
#include "engine/oracles/least_squares.h"
#include "engine/problems/linear_model.h"

namespace gradwire {

struct LeastSquares : LinearModel, LinearConstants<LeastSquares> {
  static constexpr KindFacts facts{.name = "least_squares",
                                   .summary = "||A_i x - y_i||^2 / (2 m_i), the labels as they stand"};

  static void fields(auto& self, auto&& visit) { LinearModel::fields<LeastSquares>(self, visit); }
  static LossCurvature curvature() { return {.largest = 1, .convex = true, .constant = true}; }
  template <class Real>
  std::unique_ptr<Oracle<Real>> oracle(const Agreement& agreement, const Part& part, std::uint32_t /*client*/,
                                       const AllClients&) const {
    return with_features(agreement, part, [&](const Part& features) {
      return std::make_unique<LeastSquaresOracle<Real>>(features, dim(agreement), regularizer, lambda);
    });
  }
};

}  // namespace gradwire
