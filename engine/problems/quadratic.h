#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/field.h"
#include "engine/oracle.h"
#include "engine/oracles/quadratic.h"
#include "engine/part.h"
#include "engine/problems/kind.h"
#include "engine/smoothness/smoothness.h"

namespace gradwire {

// engine/oracles/quadratic.h. All constants are exact, wherever they are computed: there is no data.
struct Quadratic {
  static constexpr KindFacts facts{
      .name = "quadratic",
      .summary =
          "tridiagonal quadratics x^T A_i x / 2 - b_i^T x; heterogeneity says how much clients differ"};
  QuadraticShape shape;

  static void fields(auto& self, auto&& visit) {
    visit("lambda", self.shape.lambda, "the smallest eigenvalue of the mean Hessian");
    visit("dim", self.shape.dim, "d, the length of x",
          {.high = kMaxModelDim, .required = ": the length of x, as in dim = 1000", .quiet = true});
    visit("heterogeneity", self.shape.heterogeneity, "s, how much the clients differ; 0: not at all");
  }
  void check() const {}
  void check(const Agreement& agreement) const;
  std::size_t dim(const Agreement&) const { return shape.dim; }
  std::vector<double> start(const Agreement& agreement, std::uint64_t seed) const;  // sqrt(d) e_1
  template <class Real>
  std::unique_ptr<Oracle<Real>> oracle(const Agreement&, const Part&, std::uint32_t client,
                                       const AllClients& all) const {
    return std::make_unique<QuadraticOracle<Real>>(family(all), client);
  }
  // Those of all clients, from one family.
  template <class Real>
  std::vector<std::unique_ptr<Oracle<Real>>> oracles(const AllClients& all) const {
    const QuadraticFamily shared = family(all);
    std::vector<std::unique_ptr<Oracle<Real>>> oracles;
    oracles.reserve(all.clients);
    for (std::uint32_t client = 0; client < all.clients; ++client)
      oracles.push_back(std::make_unique<QuadraticOracle<Real>>(shared, client));
    return oracles;
  }

  ClientSmoothness client_smoothness(const Agreement&, const Part&, std::uint32_t client,
                                     const AllClients& all) const {
    return family(all).client(client);
  }
  Smoothness smoothness(const Agreement&, std::span<const Part>, std::span<const double> weights,
                        const AllClients& all) const {
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
