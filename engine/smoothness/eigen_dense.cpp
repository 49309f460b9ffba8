#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/smoothness/eigen.h"

namespace gradwire {

std::size_t count_below(const Tridiagonal& matrix, double x) {
  std::size_t count = 0;
  double pivot = 1;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    const double off_diagonal = i == 0 ? 0 : matrix.off_diagonal[i - 1];
    // The next line divides by the pivot, so 0 becomes the smallest number. The count is then that of a
    // matrix one rounding away.
    if (pivot == 0) pivot = std::numeric_limits<double>::min();
    pivot = matrix.diagonal[i] - x - off_diagonal * off_diagonal / pivot;
    count += pivot < 0;
  }
  return count;
}

double eigenvalue(const Tridiagonal& matrix, std::size_t index) {
  // Gershgorin: all eigenvalues are in [-bound, bound].
  double bound = 0;
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    double radius = std::abs(matrix.diagonal[i]);
    if (i > 0) radius += std::abs(matrix.off_diagonal[i - 1]);
    if (i + 1 < matrix.size()) radius += std::abs(matrix.off_diagonal[i]);
    bound = std::max(bound, radius);
  }
  if (bound == 0 || !std::isfinite(bound)) return bound;
  // Scale into [-1, 1] by a power of two, so that the squares in count_below neither overflow nor vanish.
  const int exponent = std::ilogb(bound) + 1;
  Tridiagonal scaled = matrix;
  for (double& entry : scaled.diagonal) entry = std::ldexp(entry, -exponent);
  for (double& entry : scaled.off_diagonal) entry = std::ldexp(entry, -exponent);
  double low = -1, high = 1;
  while (high - low > 0.25 * std::numeric_limits<double>::epsilon()) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;
    (count_below(scaled, middle) > index ? high : low) = middle;
  }
  return std::ldexp(low + (high - low) / 2, exponent);
}

namespace {

// Computes row -= a q + b v, then p += c row, over [begin, end). This is the pending update of one row and
// its share of the next product, in one pass over memory.
void update_and_multiply(std::size_t begin, std::size_t end, double* __restrict row, double a,
                         const double* __restrict q, double b, const double* __restrict v, double c,
                         double* __restrict p) {
  for (std::size_t j = begin; j < end; ++j) {
    const double entry = row[j] - (a * q[j] + b * v[j]);
    row[j] = entry;
    p[j] += c * entry;
  }
}

// Computes v, starting at `begin`, such that I - v v^T / half_norm with half_norm = v^T v / 2 turns `row`
// into (result, 0, ..., 0). Returns the result. If the row is already 0, half_norm = 0 and v = 0.
double reflection(std::size_t begin, std::size_t end, const double* row, std::vector<double>& v,
                  double& half_norm) {
  double scale = 0, square = 0;
  for (std::size_t j = begin; j < end; ++j) scale = std::max(scale, std::abs(row[j]));
  half_norm = 0;
  for (std::size_t j = begin; j < end; ++j) {
    v[j] = scale == 0 ? 0 : row[j] / scale;
    square += v[j] * v[j];
  }
  if (scale == 0) return 0;
  const double alpha = v[begin] > 0 ? -std::sqrt(square) : std::sqrt(square);
  half_norm = square - alpha * v[begin];
  v[begin] -= alpha;
  return alpha * scale;
}

}  // namespace

// Let B be the rest of the matrix below and right of entry k. Step k replaces B by H B H, H = I - v v^T / h,
// which is B - v q^T - q v^T with p = B v / h and q = p - v (p^T v) / (2 h). The update stays pending until
// the next step reads the rows.
Tridiagonal tridiagonalize(std::vector<double> matrix, std::size_t n) {
  Tridiagonal result;
  result.diagonal.resize(n);
  result.off_diagonal.resize(n == 0 ? 0 : n - 1);
  std::vector<double> v(n), q(n), next_v(n), p(n);  // v and q belong to the pending update
  for (std::size_t k = 0; k < n; ++k) {
    double* row = &matrix[k * n];
    update_and_multiply(k, n, row, v[k], q.data(), q[k], v.data(), 0, p.data());
    result.diagonal[k] = row[k];
    if (k + 1 == n) break;
    double half_norm = 0;
    result.off_diagonal[k] = reflection(k + 1, n, row, next_v, half_norm);
    std::fill(p.begin(), p.end(), 0.0);
    for (std::size_t i = k + 1; i < n; ++i) {
      update_and_multiply(k + 1, n, &matrix[i * n], v[i], q.data(), q[i], v.data(), next_v[i], p.data());
    }
    v.swap(next_v);
    double overlap = 0;
    for (std::size_t j = k + 1; j < n; ++j) {
      p[j] = half_norm == 0 ? 0 : p[j] / half_norm;
      overlap += p[j] * v[j];
    }
    const double share = half_norm == 0 ? 0 : overlap / (2 * half_norm);
    for (std::size_t j = k + 1; j < n; ++j) q[j] = p[j] - share * v[j];
  }
  return result;
}

}  // namespace gradwire
