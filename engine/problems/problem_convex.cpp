// The kinds with closed-form constants.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

#include "engine/problems/least_squares.h"
#include "engine/problems/logistic.h"
#include "engine/problems/problem_kinds.h"
#include "engine/problems/quadratic.h"

namespace gradwire {

std::size_t feature_count(const ProblemSpec& spec, const Agreement& agreement) {
  if (spec.dim > 0 && spec.dim < agreement.columns) {
    throw DataError("problem.dim = " + std::to_string(spec.dim) + " but the data has " +
                    std::to_string(agreement.columns) + " features; raise problem.dim or leave it out");
  }
  const std::size_t count = spec.dim > 0 ? spec.dim : agreement.columns;
  if (count == 0) throw DataError("the data has no features; set problem.dim if all of them are 0");
  return count;
}

std::string count_and_list(const std::vector<double>& labels) {
  constexpr std::size_t kShown = 5;
  std::string text = std::to_string(labels.size()) + ": ";
  for (std::size_t i = 0; i < std::min(labels.size(), kShown); ++i) {
    char number[32];
    std::snprintf(number, sizeof number, "%s%g", i == 0 ? "" : ", ", labels[i]);
    text += number;
  }
  return labels.size() > kShown ? text + ", ..." : text;
}

// ---- quadratic ----

void QuadraticKind::check(const ProblemSpec& spec, const Agreement&) {
  if (spec.dim == 0) throw DataError("a quadratic problem needs its dimension: set problem.dim");
  if (spec.clients == 0) throw DataError("a quadratic problem needs at least one client");
  if (!(spec.heterogeneity >= 0) || !std::isfinite(spec.heterogeneity)) {
    throw DataError("problem.heterogeneity must be a finite number, 0 or more");
  }
  if (spec.regularizer != Regularizer::kNone) {
    throw DataError("a quadratic problem has no regularizer; lambda is the smallest eigenvalue of the mean");
  }
}

std::vector<double> QuadraticKind::start(const ProblemSpec& spec, const Agreement&) {
  std::vector<double> start(spec.dim);
  if (!start.empty()) start[0] = std::sqrt(static_cast<double>(spec.dim));
  return start;
}

template <class Real>
std::unique_ptr<Oracle<Real>> QuadraticKind::oracle(const ProblemSpec& spec, const Agreement&, const Part&,
                                                    std::uint32_t client) {
  return std::make_unique<QuadraticOracle<Real>>(QuadraticFamily(spec), client);
}

template <class Real>
std::vector<std::unique_ptr<Oracle<Real>>> QuadraticKind::oracles(const ProblemSpec& spec) {
  const QuadraticFamily family(spec);
  std::vector<std::unique_ptr<Oracle<Real>>> oracles;
  oracles.reserve(spec.clients);
  for (std::uint32_t client = 0; client < spec.clients; ++client)
    oracles.push_back(std::make_unique<QuadraticOracle<Real>>(family, client));
  return oracles;
}
template std::vector<std::unique_ptr<Oracle<float>>> QuadraticKind::oracles(const ProblemSpec&);
template std::vector<std::unique_ptr<Oracle<double>>> QuadraticKind::oracles(const ProblemSpec&);

// ---- linear models ----

namespace {

// Calls make(part) with the features of the model: those of the data, and the bias.
template <class Make>
auto with_features(const ProblemSpec& spec, const Agreement& agreement, const Part& part, const Make& make) {
  if (!spec.bias) return make(part);
  const std::size_t columns = feature_count(spec, agreement);
  return make(Part{with_bias(part.train, columns), with_bias(part.test, columns)});
}

}  // namespace

// ---- least_squares ----

template <class Real>
std::unique_ptr<Oracle<Real>> LeastSquaresKind::oracle(const ProblemSpec& spec, const Agreement& agreement,
                                                       const Part& part, std::uint32_t) {
  return with_features(spec, agreement, part, [&](const Part& features) {
    return std::make_unique<LeastSquaresOracle<Real>>(features, dim(spec, agreement), spec.regularizer,
                                                      spec.lambda);
  });
}

// ---- logistic ----

void LogisticKind::check(const ProblemSpec&, const Agreement& agreement) {
  if (agreement.labels.size() == 2) return;
  throw DataError("logistic regression needs exactly two labels but the data has " +
                  count_and_list(agreement.labels) + "; for more classes use kind = \"mlp\"");
}

template <class Real>
std::unique_ptr<Oracle<Real>> LogisticKind::oracle(const ProblemSpec& spec, const Agreement& agreement,
                                                   const Part& part, std::uint32_t) {
  return with_features(spec, agreement, part, [&](const Part& features) {
    return std::make_unique<LogisticOracle<Real>>(features, dim(spec, agreement), agreement.labels,
                                                  spec.regularizer, spec.lambda, spec.loss);
  });
}

#define GRADWIRE_ORACLES(Kind)                                                                             \
  template std::unique_ptr<Oracle<float>> Kind::oracle(const ProblemSpec&, const Agreement&, const Part&,  \
                                                       std::uint32_t);                                     \
  template std::unique_ptr<Oracle<double>> Kind::oracle(const ProblemSpec&, const Agreement&, const Part&, \
                                                        std::uint32_t);
GRADWIRE_ORACLES(QuadraticKind)
GRADWIRE_ORACLES(LeastSquaresKind)
GRADWIRE_ORACLES(LogisticKind)
#undef GRADWIRE_ORACLES

}  // namespace gradwire
