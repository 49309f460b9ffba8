#include "algorithms/support/gradient_code.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/rng_stream.h"

namespace gradwire {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * b[j];
  return sum;
}
// Computes v -= c u.
void subtract(double c, const Vector& u, Vector& v) {
  for (std::size_t j = 0; j < v.size(); ++j) v[j] -= c * u[j];
}

// Solves A x = y for a small A by Gaussian elimination with row pivoting.
Vector solve(std::vector<Vector> A, Vector y) {
  const std::size_t size = y.size();
  for (std::size_t k = 0; k < size; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < size; ++i)
      if (std::abs(A[i][k]) > std::abs(A[pivot][k])) pivot = i;
    std::swap(A[k], A[pivot]);
    std::swap(y[k], y[pivot]);
    for (std::size_t i = k + 1; i < size; ++i) {
      const double c = A[i][k] / A[k][k];
      subtract(c, A[k], A[i]);
      y[i] -= c * y[k];
    }
  }
  for (std::size_t k = size; k-- > 0;) {
    for (std::size_t j = k + 1; j < size; ++j) y[k] -= A[k][j] * y[j];
    y[k] /= A[k][k];
  }
  return y;
}

// Returns the a that minimises ‖1 − Σ a_i columns[i]‖, by Gram-Schmidt orthogonalization. Each step takes the
// column with the largest remainder. a_i is 0 for columns that are left without a remainder.
Vector closest_to_ones(std::vector<Vector> columns) {
  constexpr double kNothing = 1e-16;  // share of the largest squared length; a smaller remainder counts as 0
  const std::size_t count = columns.size();
  Vector target(count == 0 ? 0 : columns[0].size(), 1.0), y, a(count);
  std::vector<Vector> R(count, Vector(count));  // R[k][i]: the share of direction k in column i
  std::vector<Vector> directions;
  std::vector<std::size_t> chosen;
  double longest = 0;
  for (const Vector& v : columns) longest = std::max(longest, dot(v, v));
  std::vector<char> is_left(count, 1);
  for (;;) {
    std::size_t best = count;
    double most = kNothing * longest;
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_left[i]) continue;
      const double length = dot(columns[i], columns[i]);
      if (length > most) {
        most = length;
        best = i;
      }
    }
    if (best == count) break;
    const std::size_t k = directions.size();
    Vector& q = columns[best];
    for (const Vector& d : directions) subtract(dot(d, q), d, q);  // repeated to reduce rounding errors
    const double length = std::sqrt(dot(q, q));
    for (double& v : q) v /= length;
    R[k][best] = length;
    is_left[best] = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!is_left[i]) continue;
      R[k][i] = dot(q, columns[i]);
      subtract(R[k][i], q, columns[i]);
    }
    y.push_back(dot(q, target));
    subtract(y.back(), q, target);
    chosen.push_back(best);
    directions.push_back(std::move(q));
  }
  for (std::size_t k = chosen.size(); k-- > 0;) {
    double rest = y[k];
    for (std::size_t j = k + 1; j < chosen.size(); ++j) rest -= R[k][chosen[j]] * a[chosen[j]];
    a[chosen[k]] = rest / R[k][chosen[k]];
  }
  return a;
}

}  // namespace

GradientCode::GradientCode(std::uint32_t n, DataReplication replication, bool exact, std::uint64_t seed)
    : n_(n), replication_(replication) {
  if (!exact || replication.placement == ReplicaPlacement::kGroups || replication.count == 1) return;
  RngStream stream({seed, kServerClient, 0, RngDomain::kGradientCode});
  H_.assign(replication.count - 1, Vector(n));
  for (Vector& row : H_) {
    double sum = 0;
    for (double& h : row) sum += h = 2 * stream.uniform() - 1;
    for (double& h : row) h -= sum / n;
  }
}

// Solves H b_i = 0 for the r + 1 parts of the client; the solution is unique up to its length. The kernel of
// H has n − r dimensions. It contains all b_i and the vector of ones, which stands for the sum over all
// parts. The b_i of any n − r clients almost surely span it, so the sums of these clients give the sum over
// all parts.
std::vector<double> GradientCode::factors(ClientId i) const {
  Vector b(replication_.count, 1.0);
  if (is_plain()) return b;
  const std::size_t r = H_.size();
  std::vector<Vector> A(r, Vector(r));
  Vector y(r);
  for (std::size_t row = 0; row < r; ++row) {
    y[row] = -H_[row][replication_.part(i, 0, n_)];
    for (std::uint32_t k = 1; k <= r; ++k) A[row][k - 1] = H_[row][replication_.part(i, k, n_)];
  }
  const Vector rest = solve(std::move(A), std::move(y));
  double largest = 1;
  for (const double v : rest) largest = std::max(largest, std::abs(v));
  for (std::size_t k = 0; k <= r; ++k) b[k] = (k == 0 ? 1 : rest[k - 1]) / largest;
  return b;
}

std::vector<double> GradientCode::dense_factors(ClientId i) const {
  const Vector own = factors(i);
  Vector b(n_);
  for (std::uint32_t k = 0; k < replication_.count; ++k) b[replication_.part(i, k, n_)] = own[k];
  return b;
}

std::vector<double> GradientCode::weights(std::span<const ClientId> clients) const {
  if (replication_.placement == ReplicaPlacement::kRing && replication_.count > 1) {
    std::vector<Vector> columns;
    for (const ClientId i : clients) columns.push_back(dense_factors(i));
    return closest_to_ones(std::move(columns));
  }
  Vector a(clients.size());
  for (std::size_t k = 0; k < clients.size(); ++k)
    a[k] = k == 0 || clients[k] / replication_.count != clients[k - 1] / replication_.count;
  return a;
}

}  // namespace gradwire
