// The kinds of problem, one struct each; engine/problems/problem.cpp has the table of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/network/network_oracle.h"
#include "engine/problems/problem.h"

namespace gradwire {

// problem.dim, or the number of features in the data. Throws DataError when the data have more, or none.
std::size_t feature_count(const ProblemSpec& spec, const Agreement& agreement);

// "5: 1, 2, ...", for messages.
std::string count_and_list(const std::vector<double>& labels);

struct QuadraticKind {
  static void check(const ProblemSpec& spec, const Agreement& agreement);
  static std::size_t dim(const ProblemSpec& spec, const Agreement&) { return spec.dim; }
  static std::vector<double> start(const ProblemSpec& spec, const Agreement& agreement);
  template <class Real>
  static std::unique_ptr<Oracle<Real>> oracle(const ProblemSpec& spec, const Agreement& agreement,
                                              const Part& part, std::uint32_t client);
  // The oracles of all clients, from one family.
  template <class Real>
  static std::vector<std::unique_ptr<Oracle<Real>>> oracles(const ProblemSpec& spec);
};

// Linear models: d is the number of features, and one more with a bias.
struct LinearKind {
  static void check(const ProblemSpec&, const Agreement&) {}
  static std::size_t dim(const ProblemSpec& spec, const Agreement& agreement) {
    return feature_count(spec, agreement) + (spec.bias ? 1 : 0);
  }
  static std::vector<double> start(const ProblemSpec& spec, const Agreement& agreement) {
    return std::vector<double>(dim(spec, agreement));
  }
};
struct LeastSquaresKind : LinearKind {
  template <class Real>
  static std::unique_ptr<Oracle<Real>> oracle(const ProblemSpec& spec, const Agreement& agreement,
                                              const Part& part, std::uint32_t client);
};
struct LogisticKind : LinearKind {
  static void check(const ProblemSpec& spec, const Agreement& agreement);
  template <class Real>
  static std::unique_ptr<Oracle<Real>> oracle(const ProblemSpec& spec, const Agreement& agreement,
                                              const Part& part, std::uint32_t client);
};

// A network over the samples of a client. Kind has
//   check(spec, agreement)                                throws DataError
//   network(spec, agreement)                              REQUIRES: check passed
//   samples<Real>(spec, agreement, const Part&, Half)     null: none
enum class Half : std::uint8_t { kTrain, kTest };
template <class Kind>
struct NetworkKind {
  static std::size_t dim(const ProblemSpec& spec, const Agreement& agreement) {
    return Kind::network(spec, agreement).dim();
  }
  static std::vector<double> start(const ProblemSpec& spec, const Agreement& agreement) {
    return Kind::network(spec, agreement).start(spec.seed);
  }
  template <class Real>
  static std::unique_ptr<Oracle<Real>> oracle(const ProblemSpec& spec, const Agreement& agreement,
                                              const Part& part, std::uint32_t /*client*/) {
    return std::make_unique<NetworkOracle<Real>>(
        Kind::network(spec, agreement), Kind::template samples<Real>(spec, agreement, part, Half::kTrain),
        part.test_count() > 0 ? Kind::template samples<Real>(spec, agreement, part, Half::kTest) : nullptr,
        spec.regularizer, spec.lambda);
  }
};

struct MlpKind : NetworkKind<MlpKind> {
  static void check(const ProblemSpec& spec, const Agreement& agreement);
  static Network network(const ProblemSpec& spec, const Agreement& agreement);
  template <class Real>
  static std::unique_ptr<const Examples<Real>> samples(const ProblemSpec& spec, const Agreement& agreement,
                                                       const Part& part, Half half);
};
struct CnnKind : NetworkKind<CnnKind> {
  static void check(const ProblemSpec& spec, const Agreement& agreement);
  static Network network(const ProblemSpec& spec, const Agreement& agreement);
  template <class Real>
  static std::unique_ptr<const Examples<Real>> samples(const ProblemSpec& spec, const Agreement& agreement,
                                                       const Part& part, Half half);
};

struct TextKind {
  template <class Real>
  static std::unique_ptr<const Examples<Real>> samples(const ProblemSpec& spec, const Agreement& agreement,
                                                       const Part& part, Half half);
};
struct CharMlpKind : TextKind, NetworkKind<CharMlpKind> {
  static void check(const ProblemSpec& spec, const Agreement& agreement);
  static Network network(const ProblemSpec& spec, const Agreement& agreement);
};
struct GptKind : TextKind, NetworkKind<GptKind> {
  static void check(const ProblemSpec& spec, const Agreement& agreement);
  static Network network(const ProblemSpec& spec, const Agreement& agreement);
};

}  // namespace gradwire
