#include "engine/smoothness/smoothness.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "engine/problems/problem.h"
#include "engine/problems/quadratic.h"
#include "engine/regularizer.h"
#include "engine/smoothness/gram.h"

namespace gradwire {
namespace {

// Largest |l''(z)| of the loss of one sample along its a_r. Of (1 - sigma(z))^2, with s = 1 - sigma(z), it is
// 2 s^2 (1 - s) (2 - 3 s) in [-0.1202, 0.1541], largest at a root of the derivative 2 s (4 - 15 s + 12 s^2).
double loss_curvature(const ProblemSpec& spec) {
  if (spec.kind == "logistic" && spec.loss == LinearLoss::kSigmoidSquared) {
    const double s = (15 - std::sqrt(33.0)) / 24;
    return 2 * s * s * (1 - s) * (2 - 3 * s);
  }
  if (spec.kind == "logistic") return 0.25;
  if (spec.kind == "least_squares") return 1;
  throw std::logic_error("no closed-form smoothness for the problem kind '" + spec.kind + "'");
}

bool has_ridge(const ProblemSpec& spec) { return spec.regularizer == Regularizer::kL2 && spec.lambda > 0; }

bool has_nonconvex(const ProblemSpec& spec) {
  return spec.regularizer == Regularizer::kNonconvex && spec.lambda > 0;
}

bool is_convex(const ProblemSpec& spec) {
  return !has_nonconvex(spec) && spec.loss != LinearLoss::kSigmoidSquared;
}

// Strong convexity of a sum whose weights add up to `weight`.
double strong_convexity(const ProblemSpec& spec, const Gram& gram, double weight) {
  if (!is_convex(spec)) return 0;
  const double ridge = has_ridge(spec) ? weight * spec.lambda : 0;
  if (spec.kind == "logistic") return ridge;
  return ridge + gram.smallest_eigenvalue(ridge > 0 ? Smallest::kOfAll : Smallest::kNonzero);
}

// The samples of one client with all features of the model. `biased` stores them when the model has a bias.
const Dataset& client_rows(const ProblemSpec& spec, std::size_t dim, const Part& part, std::uint32_t client,
                           Dataset& biased) {
  const std::size_t columns = dim - (spec.bias ? 1 : 0);
  if (part.train.rows() == 0) throw DataError("client " + std::to_string(client) + " has no samples");
  for (const std::uint32_t column : part.train.column) {
    if (column < columns) continue;
    throw DataError("client " + std::to_string(client) + " has feature number " +
                    std::to_string(column + std::uint64_t{1}) + " but the model has " +
                    std::to_string(columns) + " features; set problem.dim");
  }
  if (!spec.bias) return part.train;
  biased = with_bias(part.train, columns);
  return biased;
}

Gram client_gram(const ProblemSpec& spec, std::size_t dim, const Dataset& rows) {
  return {.columns = dim, .terms = {{&rows, loss_curvature(spec) / static_cast<double>(rows.rows())}}};
}

// sqrt(mean_j L_ij^2) and max_j L_ij: sample j has L_ij = curvature ||a_j||^2 + what the regulariser adds.
void add_sample_constants(const ProblemSpec& spec, const Dataset& rows, ClientSmoothness& client) {
  const double curvature = loss_curvature(spec);
  const double ridge = regularizer_smoothness(spec.regularizer, spec.lambda);
  double sum = 0;
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    double norm_sq = 0;
    for (const double value : rows.row_values(r)) norm_sq += value * value;
    const double L_ij = curvature * norm_sq + ridge;
    sum += L_ij * L_ij;
    client.L_sample_max = std::max(client.L_sample_max, L_ij);
  }
  client.L_s = std::sqrt(sum / static_cast<double>(rows.rows()));
}

// All constants but mu_i.
ClientSmoothness without_convexity(const ProblemSpec& spec, const Gram& gram) {
  ClientSmoothness client;
  client.L_i = gram.largest_eigenvalue() + regularizer_smoothness(spec.regularizer, spec.lambda);
  add_sample_constants(spec, *gram.terms[0].rows, client);
  return client;
}

// L_s and L_sample_max of all clients together. REQUIRES: result.weights is set.
void combine_sample_constants(std::span<const ClientSmoothness> clients, Smoothness& result) {
  double sum = 0;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const double weight =
        result.weights.empty() ? 1.0 / static_cast<double>(clients.size()) : result.weights[i];
    sum += weight * clients[i].L_s * clients[i].L_s;
    result.L_sample_max = std::max(result.L_sample_max, clients[i].L_sample_max);
  }
  result.L_s = std::sqrt(sum);
}

// Sets L_plus and L_pm where Hessians are constant. The nonconvex regulariser's Hessian is not constant, but
// it is the same for all clients, so the variance of the Hessians is constant.
void add_variances(const ProblemSpec& spec, std::span<const Gram> grams, Smoothness& result) {
  if (spec.kind != "least_squares") return;
  std::vector<double> weights = result.weights;
  if (weights.empty()) weights.assign(grams.size(), 1.0 / static_cast<double>(grams.size()));
  const double ridge = has_ridge(spec) ? spec.lambda : 0;
  const double mean_square = largest_mean_square(grams, weights, ridge);
  if (!has_nonconvex(spec)) result.L_plus = std::sqrt(mean_square);
  result.L_pm = grams.size() == 1 ? 0 : std::sqrt(largest_variance(grams, weights, mean_square));
}

}  // namespace

ClientSmoothness client_smoothness(const ProblemSpec& spec, const Agreement& agreement, const Part& part,
                                   std::uint32_t client) {
  if (spec.kind == "quadratic") return QuadraticFamily(spec).client(client);
  loss_curvature(spec);  // throws for kinds without constants
  const std::size_t d = model_dim(spec, agreement);
  Dataset biased;
  const Gram gram = client_gram(spec, d, client_rows(spec, d, part, client, biased));
  ClientSmoothness constants = without_convexity(spec, gram);
  constants.mu_i = strong_convexity(spec, gram, 1);
  return constants;
}

Smoothness smoothness(const ProblemSpec& spec, const Agreement& agreement, std::span<const Part> parts,
                      std::span<const double> weights) {
  if (!weights.empty() && weights.size() != spec.clients)
    throw std::logic_error("smoothness: one weight per client");
  if (spec.kind == "quadratic") return QuadraticFamily(spec).total(weights);
  if (parts.size() != spec.clients) throw std::logic_error("smoothness: one part per client");
  const std::size_t d = model_dim(spec, agreement);
  const double ridge = regularizer_smoothness(spec.regularizer, spec.lambda);
  Smoothness result;
  result.weights.assign(weights.begin(), weights.end());
  Gram total{.columns = d, .terms = {}};
  std::vector<Dataset> biased(spec.clients);
  std::vector<Gram> grams;
  std::vector<ClientSmoothness> clients;
  double weight_sum = 0;
  for (std::uint32_t i = 0; i < spec.clients; ++i) {
    const Gram& gram = grams.emplace_back(client_gram(spec, d, client_rows(spec, d, parts[i], i, biased[i])));
    clients.push_back(without_convexity(spec, gram));
    result.L_i.push_back(clients.back().L_i);
    const double weight = weights.empty() ? 1.0 / spec.clients : weights[i];
    total.terms.push_back({gram.terms[0].rows, weight * gram.terms[0].scale});
    weight_sum += weight;
  }
  result.L =
      spec.clients == 1 && weights.empty() ? result.L_i[0] : total.largest_eigenvalue() + weight_sum * ridge;
  result.mu = strong_convexity(spec, total, weight_sum);
  result.convex = is_convex(spec);
  combine_sample_constants(clients, result);
  add_variances(spec, grams, result);
  return result;
}

double known_convexity(const ProblemSpec& spec) {
  if (spec.kind == "quadratic") return QuadraticFamily(spec).total({}).mu;
  return has_ridge(spec) && is_convex(spec) ? spec.lambda : 0;
}

Smoothness smoothness_from_clients(const ProblemSpec& spec, std::span<const ClientSmoothness> clients,
                                   std::span<const double> weights) {
  if (!weights.empty() && weights.size() != clients.size())
    throw std::logic_error("smoothness_from_clients: one weight per client");
  if (spec.kind == "quadratic")
    return QuadraticFamily(spec).total(weights);  // exact: there is no data to see
  Smoothness result;
  result.exact = false;
  result.weights.assign(weights.begin(), weights.end());
  double weight_sum = 0, beyond_ridge = 0;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    result.L_i.push_back(clients[i].L_i);
    const double weight = weights.empty() ? 1.0 / static_cast<double>(clients.size()) : weights[i];
    weight_sum += weight;
    beyond_ridge += weight * (clients[i].mu_i - spec.lambda);
  }
  result.L = result.L_avg();
  // Strong convexity adds up; the PL constants of functions that are only convex do not. When only the ridge
  // makes f strongly convex, mu has the same bits as that of smoothness().
  if (known_convexity(spec) > 0) result.mu = weight_sum * spec.lambda + std::max(beyond_ridge, 0.0);
  result.convex = is_convex(spec);
  combine_sample_constants(clients, result);
  return result;
}

}  // namespace gradwire
