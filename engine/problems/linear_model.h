// The common part of linear models. d is the number of features, plus one with a bias.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/field.h"
#include "engine/data/client_dataset.h"
#include "engine/data/shared_samples.h"
#include "engine/problems/problem_type.h"
#include "engine/problems/sources.h"
#include "engine/regularizer.h"
#include "engine/smoothness/linear_models.h"

namespace gradwire {

inline std::span<const std::string_view> words_of(Regularizer) {
  static constexpr auto words = std::to_array<std::string_view>({"none", "l2", "nonconvex"});
  return words;
}

struct LinearModel {
  RowsData rows;
  Regularizer regularizer = Regularizer::kNone;
  bool bias = false;
  double lambda = 0;

  template <class Kind>
  static void fields(auto& self, auto&& visit) {
    RowsData::fields<Kind>(self.rows, visit);
    const bool plain = self.regularizer == Regularizer::kNone;
    visit("regularizer", self.regularizer,
          "`l2` is lambda/2 sum_j x_j^2, `nonconvex` is lambda sum_j x_j^2 / (1 + x_j^2)",
          {.quiet = plain && self.lambda == 0});
    visit("bias", self.bias, "append a constant feature 1, so d is one more", {.quiet = true});
    visit("lambda", self.lambda, "weight of the regulariser",
          {.quiet = plain, .idle_by = idle_if(plain, "regularizer")});
  }
  void check() const { rows.check(); }
  void check(const DataSchema& schema) const;
  std::size_t dim(const DataSchema& schema) const { return rows.features(schema) + (bias ? 1 : 0); }
  std::vector<double> start(const DataSchema& schema, std::uint64_t /*seed*/) const {
    return std::vector<double>(dim(schema));
  }
  std::vector<double> outputs(const DataSchema& schema, const Dataset& data, std::span<const double> x) const;

 protected:
  // Appends the constant feature 1 to the features of the data if there is a bias.
  SharedSamples with_features(const DataSchema& schema, SharedSamples samples) const {
    if (!bias) return samples;
    const std::size_t columns = rows.features(schema);
    add_bias(samples.train, columns);
    add_bias(samples.test, columns);
    return samples;
  }
};

// The constants of a linear model whose loss has the curvature Model::curvature().
template <class Model>
struct LinearConstants {
  ClientSmoothness client_smoothness(const DataSchema& schema, const ClientDataset& part,
                                     std::uint32_t client, const AllClients&) const {
    return gradwire::client_smoothness(problem(model().dim(schema)), part, client);
  }
  Smoothness smoothness(const DataSchema& schema, std::span<const ClientDataset> parts,
                        std::span<const double> weights, const AllClients&, const OrderedScan& scan) const {
    return gradwire::smoothness(problem(model().dim(schema)), parts, weights, scan);
  }
  double known_convexity(const AllClients&) const { return gradwire::known_convexity(problem(0)); }
  Smoothness smoothness_from_clients(std::span<const ClientSmoothness> clients,
                                     std::span<const double> weights, const AllClients&) const {
    return gradwire::smoothness_from_clients(problem(0), clients, weights);
  }

 private:
  const Model& model() const { return static_cast<const Model&>(*this); }
  LinearProblem problem(std::size_t d) const {
    return {model().curvature(), model().regularizer, model().lambda, d, model().bias};
  }
};

}  // namespace gradwire
