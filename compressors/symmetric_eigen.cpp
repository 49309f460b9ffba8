#include "compressors/symmetric_eigen.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradwire {
namespace {

// A square matrix, stored row by row.
struct Matrix {
  double* data;
  std::size_t m;
  double* row(std::size_t i) const { return data + i * m; }
};

// Tridiagonalises `a`, shape (m, m). Row i of `q` becomes the i-th vector of the basis in which the matrix is
// tridiagonal, with diagonal `d` and e[i] at (i, i + 1). `u` and `p`, shape (m), are work space.
void tridiagonalise(Matrix a, Matrix q, double* d, double* e, double* u, double* p) {
  const std::size_t m = a.m;
  std::fill_n(q.data, m * m, 0.0);
  for (std::size_t i = 0; i < m; ++i) q.row(i)[i] = 1;
  for (std::size_t k = 0; k + 1 < m; ++k) {
    d[k] = a.row(k)[k];
    // The reflection I - 2 u u^T, after which column k has only one nonzero number below the diagonal.
    double norm_sq = 0;
    for (std::size_t i = k + 1; i < m; ++i) norm_sq += a.row(k)[i] * a.row(k)[i];
    const double norm = std::sqrt(norm_sq), head = a.row(k)[k + 1];
    e[k] = head > 0 ? -norm : norm;
    if (norm_sq - head * head <= 0) {
      e[k] = head;
      continue;
    }
    const double length = std::sqrt(2 * (norm_sq + norm * std::abs(head)));
    for (std::size_t i = k + 1; i < m; ++i) u[i] = a.row(k)[i] / length;
    u[k + 1] = (head - e[k]) / length;
    // A <- H A H = A - 2 u w^T - 2 w u^T with w = A u - (u^T A u) u.
    double uau = 0;
    for (std::size_t i = k + 1; i < m; ++i) {
      double sum = 0;
      for (std::size_t j = k + 1; j < m; ++j) sum += a.row(i)[j] * u[j];
      p[i] = sum;
      uau += u[i] * sum;
    }
    for (std::size_t i = k + 1; i < m; ++i) p[i] -= uau * u[i];
    for (std::size_t i = k + 1; i < m; ++i)
      for (std::size_t j = k + 1; j < m; ++j) a.row(i)[j] -= 2 * (u[i] * p[j] + p[i] * u[j]);
    // Q <- H Q on the rows below k.
    std::fill_n(p, m, 0.0);
    for (std::size_t i = k + 1; i < m; ++i)
      for (std::size_t j = 0; j < m; ++j) p[j] += u[i] * q.row(i)[j];
    for (std::size_t i = k + 1; i < m; ++i)
      for (std::size_t j = 0; j < m; ++j) q.row(i)[j] -= 2 * u[i] * p[j];
  }
  d[m - 1] = a.row(m - 1)[m - 1];
}

// Returns sqrt(x^2 + y^2) by basic operations only. The last bit of std::hypot() depends on whether the
// processor has fused operations.
double length_of(double x, double y) {
  const double large = std::max(std::abs(x), std::abs(y)), small = std::min(std::abs(x), std::abs(y));
  if (small == 0) return large;
  const double ratio = small / large;
  return large * std::sqrt(1 + ratio * ratio);
}

// Takes one implicit QL step on the block lo .. hi, towards the eigenvalue near d[lo].
void ql_step(std::size_t lo, std::size_t hi, Matrix q, double* d, double* e) {
  const double delta = (d[lo + 1] - d[lo]) / (2 * e[lo]), r = length_of(delta, 1);
  double g = d[hi] - d[lo] + e[lo] / (delta + std::copysign(r, delta));
  double s = 1, c = 1, shift = 0;
  for (std::size_t i = hi; i-- > lo;) {
    const double f = s * e[i], b = c * e[i], length = length_of(f, g);
    if (i + 1 < hi) e[i + 1] = length;
    if (length == 0) {  // the block splits here
      d[i + 1] -= shift;
      return;
    }
    s = f / length;
    c = g / length;
    g = d[i + 1] - shift;
    const double t = (d[i] - g) * s + 2 * c * b;
    shift = s * t;
    d[i + 1] = g + shift;
    g = c * t - b;
    double *const x = q.row(i), *const y = q.row(i + 1);
    for (std::size_t j = 0; j < q.m; ++j) {
      const double old = y[j];
      y[j] = s * x[j] + c * old;
      x[j] = c * x[j] - s * old;
    }
  }
  d[lo] -= shift;
  e[lo] = g;
}

void diagonalise(Matrix q, double* d, double* e) {
  constexpr int kMostSteps = 60;  // three are usual; the error after 60 is small
  constexpr double kSmall = std::numeric_limits<double>::epsilon();
  for (std::size_t lo = 0; lo + 1 < q.m; ++lo) {
    for (int step = 0; step < kMostSteps; ++step) {
      std::size_t hi = lo;
      while (hi + 1 < q.m && std::abs(e[hi]) > kSmall * (std::abs(d[hi]) + std::abs(d[hi + 1]))) ++hi;
      if (hi == lo) break;
      ql_step(lo, hi, q, d, e);
    }
  }
}

}  // namespace

void symmetric_eigenvectors(std::span<double> a, std::size_t m, std::vector<double>& work,
                            std::span<double> values) {
  if (m == 0) return;
  work.resize(m * m + 4 * m);
  const Matrix q{work.data(), m};
  double *const d = work.data() + m * m, *const e = d + m, *const u = e + m, *const p = u + m;
  std::fill_n(e, m, 0.0);
  tridiagonalise({a.data(), m}, q, d, e, u, p);
  diagonalise(q, d, e);
  // Selection sort in descending order. Equal eigenvalues keep their order.
  for (std::size_t i = 0; i < m; ++i) {
    const std::size_t best = static_cast<std::size_t>(std::max_element(d, d + m) - d);
    std::copy_n(q.row(best), m, a.data() + i * m);
    if (!values.empty()) values[i] = d[best];
    d[best] = -std::numeric_limits<double>::infinity();
  }
}

}  // namespace gradwire
