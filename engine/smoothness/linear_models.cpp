#include "engine/smoothness/linear_models.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "engine/regularizer.h"
#include "engine/smoothness/gram.h"

namespace gradwire {
namespace {

bool has_ridge(const LinearProblem& p) { return p.regularizer == Regularizer::kL2 && p.lambda > 0; }

bool has_nonconvex(const LinearProblem& p) {
  return p.regularizer == Regularizer::kNonconvex && p.lambda > 0;
}

bool is_convex(const LinearProblem& p) { return !has_nonconvex(p) && p.curvature.convex; }

// Returns the strong convexity of a sum whose weights add up to `weight`. Only a loss of constant curvature
// adds to that of the regularizer.
double strong_convexity(const LinearProblem& p, const Gram& gram, double weight,
                        const OrderedScan& scan = {}) {
  if (!is_convex(p)) return 0;
  const double ridge = has_ridge(p) ? weight * p.lambda : 0;
  if (!p.curvature.constant) return ridge;
  return ridge + gram.smallest_eigenvalue(ridge > 0 ? Smallest::kOfAll : Smallest::kNonzero, scan);
}

// Throws DataError if a constant of the client would exceed kLargestConstant. Squares of smaller constants do
// not overflow.
void check_sizes(const LinearProblem& p, const Dataset& rows, std::uint32_t client) {
  constexpr double kLargestConstant = 1e150;
  double sum = 0;
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    double norm_sq = 0;
    for (const double value : rows.row_values(r)) norm_sq += value * value;
    sum += p.curvature.largest * norm_sq;
    if (sum <= kLargestConstant) continue;
    const auto values = rows.row_values(r);
    const auto largest =
        std::ranges::max_element(values, {}, [](double value) { return std::abs(value); }) - values.begin();
    char value[32];
    std::snprintf(value, sizeof value, "%.4g", values[static_cast<std::size_t>(largest)]);
    throw DataError(
        "client " + std::to_string(client) + ": feature number " +
        std::to_string(rows.row_columns(r)[static_cast<std::size_t>(largest)] + std::uint64_t{1}) +
        " of its sample " + std::to_string(r + 1) + " is " + value +
        ", which is too large for the smoothness constants of theory; scale the features");
  }
}

// Returns the samples of one client with all features of the model. `biased` stores them if the model has a
// bias.
const Dataset& client_rows(const LinearProblem& p, const ClientDataset& part, std::uint32_t client,
                           Dataset& biased) {
  const std::size_t columns = p.d - (p.bias ? 1 : 0);
  if (part.train.rows() == 0) throw DataError("client " + std::to_string(client) + " has no samples");
  for (const std::uint32_t column : part.train.column) {
    if (column < columns) continue;
    throw DataError("client " + std::to_string(client) + " has feature number " +
                    std::to_string(column + std::uint64_t{1}) + " but the model has " +
                    std::to_string(columns) + " features; set problem.dim");
  }
  check_sizes(p, part.train, client);
  if (!p.bias) return part.train;
  biased = part.train;
  add_bias(biased, columns);
  return biased;
}

Gram client_gram(const LinearProblem& p, const Dataset& rows) {
  return {.columns = p.d, .terms = {{&rows, p.curvature.largest / static_cast<double>(rows.rows())}}};
}

// Sets L_s = sqrt(mean_j L_ij^2) and L_sample_max = max_j L_ij. Sample j has L_ij = curvature ||a_j||^2 plus
// the smoothness of the regularizer.
void add_sample_constants(const LinearProblem& p, const Dataset& rows, ClientSmoothness& client) {
  const double ridge = regularizer_smoothness(p.regularizer, p.lambda);
  double sum = 0;
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    double norm_sq = 0;
    for (const double value : rows.row_values(r)) norm_sq += value * value;
    const double L_ij = p.curvature.largest * norm_sq + ridge;
    sum += L_ij * L_ij;
    client.L_sample_max = std::max(client.L_sample_max, L_ij);
  }
  client.L_s = std::sqrt(sum / static_cast<double>(rows.rows()));
}

// Returns all constants except mu_i.
ClientSmoothness without_convexity(const LinearProblem& p, const Gram& gram) {
  ClientSmoothness client;
  client.L_i = gram.largest_eigenvalue() + regularizer_smoothness(p.regularizer, p.lambda);
  add_sample_constants(p, *gram.terms[0].rows, client);
  return client;
}

// Sets L_s and L_sample_max of all clients together. REQUIRES: result.weights is set.
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

// Sets L_plus and L_pm if Hessians are constant. The Hessian of the nonconvex regularizer is not constant,
// but it is the same for all clients, so the variance of the Hessians is constant.
void add_variances(const LinearProblem& p, std::span<const Gram> grams, std::span<const double> weights,
                   const OrderedScan& scan, Smoothness& result) {
  if (!p.curvature.constant) return;
  const double ridge = has_ridge(p) ? p.lambda : 0;
  const double mean_square = largest_mean_square(p.d, grams, weights, ridge, scan);
  if (!has_nonconvex(p)) result.L_plus = std::sqrt(mean_square);
  result.L_pm =
      result.L_i.size() == 1 ? 0 : std::sqrt(largest_variance(p.d, grams, weights, mean_square, scan));
}

// Fills in the constants of the clients of other processes. Those of this process start at number `first`.
void share(std::span<ClientSmoothness> clients, std::size_t own, const OrderedScan& scan) {
  std::vector<double> numbers(3 * clients.size());
  scan(numbers, [&] {
    for (std::size_t i = scan.first; i < scan.first + own; ++i) {
      numbers[3 * i] = clients[i].L_i;
      numbers[3 * i + 1] = clients[i].L_s;
      numbers[3 * i + 2] = clients[i].L_sample_max;
    }
  });
  for (std::size_t i = 0; i < clients.size(); ++i)
    clients[i] = {.L_i = numbers[3 * i], .L_s = numbers[3 * i + 1], .L_sample_max = numbers[3 * i + 2]};
}

}  // namespace

ClientSmoothness client_smoothness(const LinearProblem& p, const ClientDataset& part, std::uint32_t client) {
  Dataset biased;
  const Gram gram = client_gram(p, client_rows(p, part, client, biased));
  ClientSmoothness constants = without_convexity(p, gram);
  constants.mu_i = strong_convexity(p, gram, 1);
  return constants;
}

Smoothness smoothness(const LinearProblem& p, std::span<const ClientDataset> parts,
                      std::span<const double> weights, const OrderedScan& scan) {
  const std::size_t n = scan.all_clients(parts.size());
  const double ridge = regularizer_smoothness(p.regularizer, p.lambda);
  Smoothness result;
  result.weights.assign(weights.begin(), weights.end());
  std::vector<double> each(weights.begin(), weights.end());
  if (each.empty()) each.assign(n, 1.0 / static_cast<double>(n));
  const std::span<const double> own_weights = std::span(each).subspan(scan.first, parts.size());
  Gram total{.columns = p.d, .terms = {}};
  std::vector<Dataset> biased(parts.size());
  std::vector<Gram> grams;
  std::vector<ClientSmoothness> clients(n);
  // All processes report an error in the samples of any client.
  scan({}, [&] {
    for (std::uint32_t k = 0; k < parts.size(); ++k) {
      const Gram& gram =
          grams.emplace_back(client_gram(p, client_rows(p, parts[k], scan.first + k, biased[k])));
      total.terms.push_back({gram.terms[0].rows, own_weights[k] * gram.terms[0].scale});
    }
  });
  for (std::size_t k = 0; k < parts.size(); ++k) clients[scan.first + k] = without_convexity(p, grams[k]);
  share(clients, parts.size(), scan);
  double weight_sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    result.L_i.push_back(clients[i].L_i);
    weight_sum += each[i];
  }
  result.L = n == 1 && weights.empty() ? result.L_i[0] : total.largest_eigenvalue(scan) + weight_sum * ridge;
  result.mu = strong_convexity(p, total, weight_sum, scan);
  result.convex = is_convex(p);
  combine_sample_constants(clients, result);
  add_variances(p, grams, own_weights, scan, result);
  return result;
}

double known_convexity(const LinearProblem& p) { return has_ridge(p) && is_convex(p) ? p.lambda : 0; }

Smoothness smoothness_from_clients(const LinearProblem& p, std::span<const ClientSmoothness> clients,
                                   std::span<const double> weights) {
  Smoothness result;
  result.exact = false;
  result.weights.assign(weights.begin(), weights.end());
  double weight_sum = 0, beyond_ridge = 0;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    result.L_i.push_back(clients[i].L_i);
    const double weight = weights.empty() ? 1.0 / static_cast<double>(clients.size()) : weights[i];
    weight_sum += weight;
    beyond_ridge += weight * (clients[i].mu_i - p.lambda);
  }
  result.L = result.L_avg();
  // Strong convexity adds up; the PL constants of functions that are only convex do not. If only the ridge
  // makes f strongly convex, mu has the same bits as in smoothness().
  if (known_convexity(p) > 0) result.mu = weight_sum * p.lambda + std::max(beyond_ridge, 0.0);
  result.convex = is_convex(p);
  combine_sample_constants(clients, result);
  return result;
}

}  // namespace gradwire
