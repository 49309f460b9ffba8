#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/config_error.h"
#include "base/field.h"
#include "engine/data/client_dataset.h"
#include "engine/data/dataset.h"
#include "engine/problems/problem_type.h"
#include "gradwire/oracle.h"

namespace gradwire {

// Functions of the program that embeds gradwire. Only that program has them: a simulation gets the oracles of
// all clients, a client over a network its own. The server needs none.
struct Custom {
  static constexpr ProblemTraits traits{
      .name = "custom",
      .summary = "functions of a program that uses the library; gradwire run has none",
      .brings_functions = true};
  std::uint64_t d = 0;

  static void fields(auto& self, auto&& visit) {
    visit("dim", self.d, "d, the length of x",
          {.high = kMaxModelDim, .required = ": the length of x, as in dim = 1000", .quiet = true});
  }
  void check() const {}
  void check(const DataSchema&) const {
    if (d == 0) throw DataError("a custom problem needs its dimension: set problem.dim");
  }
  std::size_t dim(const DataSchema&) const { return d; }
  std::vector<double> start(const DataSchema&, std::uint64_t) const { return std::vector<double>(d, 0.0); }
  template <class Real>
  std::unique_ptr<Oracle<Real>> oracle(const DataSchema&, const ClientDataset&, std::uint32_t,
                                       const AllClients&) const {
    throw ConfigError("problem.kind",
                      "'custom' needs a program that brings the functions of its clients (docs/api.md)");
  }
};

}  // namespace gradwire
