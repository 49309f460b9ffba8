#include "engine/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "engine/least_squares.h"
#include "engine/logistic.h"
#include "engine/mlp.h"
#include "engine/quadratic.h"

namespace gradwire {
namespace {

enum class Kind : std::uint8_t { kQuadratic, kLeastSquares, kLogistic, kMlp };

constexpr std::array<ProblemKind, 4> kKinds = {{
    {.name = "quadratic",
     .summary = "tridiagonal quadratics x^T A_i x / 2 - b_i^T x; heterogeneity says how much clients differ",
     .needs_data = false,
     .has_smoothness = true},
    {.name = "least_squares",
     .summary = "||A_i x - y_i||^2 / (2 m_i), the labels as they stand",
     .needs_data = true,
     .has_smoothness = true},
    {.name = "logistic",
     .summary = "mean_j log(1 + exp(-b_j a_j^T x)), two labels",
     .needs_data = true,
     .has_smoothness = true},
    {.name = "mlp",
     .summary =
         "softmax cross-entropy of a network with tanh hidden layers; hidden = [] is softmax regression",
     .needs_data = true,
     .has_smoothness = false},
}};

constexpr std::size_t kMaxDim = 0xfffffffe;  // coordinates have 32-bit numbers
constexpr std::size_t kMaxClasses = 65'536;  // more distinct labels are taken for a regression by mistake
constexpr std::size_t kMaxHiddenLayers = 1'000;

Kind kind_of(const ProblemSpec& spec) {
  std::string known;
  for (std::size_t k = 0; k < kKinds.size(); ++k) {
    if (kKinds[k].name == spec.kind) return static_cast<Kind>(k);
    known += (k == 0 ? "" : ", ") + std::string(kKinds[k].name);
  }
  throw DataError("unknown problem kind '" + spec.kind + "'; known are " + known);
}

std::string list_of(std::span<const double> labels) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(labels.size(), kShown); ++i) {
    char number[32];
    std::snprintf(number, sizeof number, "%s%g", i == 0 ? "" : ", ", labels[i]);
    text += number;
  }
  return labels.size() > kShown ? text + ", ..." : text;
}

std::size_t feature_count(const ProblemSpec& spec, const Agreement& agreement) {
  if (spec.dim > 0 && spec.dim < agreement.columns) {
    throw DataError("problem.dim = " + std::to_string(spec.dim) + " but the data has " +
                    std::to_string(agreement.columns) + " features; raise problem.dim or leave it out");
  }
  return spec.dim > 0 ? spec.dim : agreement.columns;
}

void check_quadratic(const ProblemSpec& spec) {
  if (spec.dim == 0) throw DataError("a quadratic problem needs its dimension: set problem.dim");
  if (spec.clients == 0) throw DataError("a quadratic problem needs at least one client");
  if (!(spec.heterogeneity >= 0) || !std::isfinite(spec.heterogeneity)) {
    throw DataError("problem.heterogeneity must be a finite number, 0 or more");
  }
  if (spec.regularizer != Regularizer::kNone) {
    throw DataError("a quadratic problem has no regularizer; lambda is the smallest eigenvalue of the mean");
  }
}

void check_logistic(const Agreement& agreement) {
  if (agreement.labels.size() == 2) return;
  throw DataError("logistic regression needs exactly two labels but the data has " +
                  std::to_string(agreement.labels.size()) + ": " + list_of(agreement.labels) +
                  "; for more classes use kind = \"mlp\"");
}

void check_mlp(const ProblemSpec& spec, const Agreement& agreement) {
  if (agreement.labels.size() < 2 || agreement.labels.size() > kMaxClasses) {
    throw DataError("kind = \"mlp\" needs 2 to " + std::to_string(kMaxClasses) +
                    " distinct labels but the data has " + std::to_string(agreement.labels.size()) + ": " +
                    list_of(agreement.labels));
  }
  if (std::count(spec.hidden.begin(), spec.hidden.end(), 0u) > 0) {
    throw DataError("problem.hidden: a layer of width 0; every width is 1 or more");
  }
  if (spec.hidden.size() > kMaxHiddenLayers) {
    throw DataError("problem.hidden has " + std::to_string(spec.hidden.size()) + " layers; at most " +
                    std::to_string(kMaxHiddenLayers));
  }
}

MlpShape mlp_shape(const ProblemSpec& spec, const Agreement& agreement) {
  return MlpShape(feature_count(spec, agreement), spec.hidden, agreement.labels.size());
}

}  // namespace

std::span<const ProblemKind> problem_kinds() { return kKinds; }

void check_agreement(const ProblemSpec& spec, const Agreement& agreement) {
  const Kind kind = kind_of(spec);
  if (!(spec.lambda >= 0) || !std::isfinite(spec.lambda)) {
    throw DataError("problem.lambda must be a finite number, 0 or more");
  }
  if (kind != Kind::kQuadratic && feature_count(spec, agreement) == 0) {
    throw DataError("the data has no features; set problem.dim if all of them are 0");
  }
  if (kind == Kind::kQuadratic) check_quadratic(spec);
  if (kind == Kind::kLogistic) check_logistic(agreement);
  if (kind == Kind::kMlp) check_mlp(spec, agreement);
  if (model_dim(spec, agreement) > kMaxDim) {
    throw DataError("the model has more than " + std::to_string(kMaxDim) + " parameters");
  }
}

std::size_t model_dim(const ProblemSpec& spec, const Agreement& agreement) {
  switch (kind_of(spec)) {
    case Kind::kQuadratic: return spec.dim;
    case Kind::kLeastSquares:
    case Kind::kLogistic: return feature_count(spec, agreement);
    case Kind::kMlp: return mlp_shape(spec, agreement).dim();
  }
  throw std::logic_error("model_dim: kind");
}

std::vector<double> model_start(const ProblemSpec& spec, const Agreement& agreement) {
  const Kind kind = kind_of(spec);
  if (kind == Kind::kMlp) return mlp_shape(spec, agreement).start(spec.seed);
  std::vector<double> start(model_dim(spec, agreement));
  if (kind == Kind::kQuadratic && !start.empty()) start[0] = std::sqrt(static_cast<double>(spec.dim));
  return start;
}

template <class Real>
std::unique_ptr<Oracle<Real>> make_oracle(const ProblemSpec& spec, const Agreement& agreement,
                                          const Part& part, std::uint32_t client) {
  switch (kind_of(spec)) {
    case Kind::kQuadratic: return std::make_unique<QuadraticOracle<Real>>(QuadraticFamily(spec), client);
    case Kind::kLeastSquares:
      return std::make_unique<LeastSquaresOracle<Real>>(part, model_dim(spec, agreement), spec.regularizer,
                                                        spec.lambda);
    case Kind::kLogistic:
      return std::make_unique<LogisticOracle<Real>>(part, model_dim(spec, agreement), agreement.labels,
                                                    spec.regularizer, spec.lambda);
    case Kind::kMlp:
      return std::make_unique<MlpOracle<Real>>(part, mlp_shape(spec, agreement), agreement.labels,
                                               spec.regularizer, spec.lambda);
  }
  throw std::logic_error("make_oracle: kind");
}

template std::unique_ptr<Oracle<float>> make_oracle(const ProblemSpec&, const Agreement&, const Part&,
                                                    std::uint32_t);
template std::unique_ptr<Oracle<double>> make_oracle(const ProblemSpec&, const Agreement&, const Part&,
                                                     std::uint32_t);

}  // namespace gradwire
