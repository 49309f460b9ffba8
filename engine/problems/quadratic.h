#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/field.h"
#include "engine/client_objectives.h"
#include "engine/data/client_dataset.h"
#include "engine/data/shared_samples.h"
#include "engine/oracles/quadratic.h"
#include "engine/problems/problem_type.h"
#include "engine/smoothness/ordered_scan.h"
#include "engine/smoothness/smoothness.h"

namespace gradwire {

// The quadratics of engine/oracles/quadratic.h as a problem type. All constants are exact on every machine,
// because there is no data.
struct Quadratic {
  static constexpr ProblemTraits traits{
      .name = "quadratic",
      .summary =
          "tridiagonal quadratics x^T A_i x / 2 - b_i^T x; heterogeneity says how much clients differ"};
  QuadraticShape shape{.lambda = 1e-3};

  bool has_minimum() const { return shape.lambda > 0; }
  bool has_equal_clients() const { return shape.heterogeneity == 0; }

  static void fields(auto& self, auto&& visit) {
    visit("lambda", self.shape.lambda, "the smallest eigenvalue of the mean Hessian; 0: f has no minimum");
    visit("dim", self.shape.dim, "d, the length of x",
          {.high = kMaxModelDim, .required = ": the length of x, as in dim = 1000", .quiet = true});
    visit("heterogeneity", self.shape.heterogeneity, "s, how much the clients differ; 0: not at all");
    visit("noise", self.shape.noise,
          "standard deviation of each entry of the gradient of one sample (`batch`); full gradients have 0");
  }
  void check() const {}
  void check(const DataSchema& schema) const;
  std::size_t dim(const DataSchema&) const { return shape.dim; }
  std::vector<double> start(const DataSchema& schema, std::uint64_t seed) const;  // sqrt(d) e_1
  template <class Real>
  std::unique_ptr<ClientObjectives<Real>> client_objectives(const DataSchema&, const SharedSamples&,
                                                            const AllClients& all) const {
    using Oracle = QuadraticOracle<Real>;
    return std::make_unique<ClientObjectivesOf<Real, Oracle>>(
        Oracle(std::make_shared<const QuadraticFamily>(family(all))));
  }

  ClientSmoothness client_smoothness(const DataSchema&, const ClientDataset&, std::uint32_t client,
                                     const AllClients& all) const {
    return family(all).client(client);
  }
  Smoothness smoothness(const DataSchema&, std::span<const ClientDataset>, std::span<const double> weights,
                        const AllClients& all, const OrderedScan&) const {
    return family(all).total(weights);
  }
  double known_convexity(const AllClients& all) const { return family(all).total({}).mu; }
  Smoothness smoothness_from_clients(std::span<const ClientSmoothness>, std::span<const double> weights,
                                     const AllClients& all) const {
    return family(all).total(weights);
  }

 private:
  QuadraticFamily family(const AllClients& all) const { return {shape, all.clients, all.seed}; }
};

}  // namespace gradwire
