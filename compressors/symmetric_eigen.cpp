#include "compressors/symmetric_eigen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace gradwire {
namespace {

// A = Q T Q^T. On return `matrix` holds Q^T (its rows are the columns of Q).
class Tridiagonalisation {
 public:
  std::vector<double> diagonal, off;  // off[k] couples k and k + 1

  Tridiagonalisation(std::vector<double>& matrix, std::size_t n)
      : diagonal(n), off(n), a_(matrix), n_(n), reflector_scale_(n) {
    for (std::size_t k = 0; k + 2 < n; ++k) reflect(k);
    for (std::size_t k = 0; k < n; ++k) diagonal[k] = at(k, k);
    if (n > 1) off[n - 2] = at(n - 1, n - 2);
    accumulate();
  }

 private:
  double& at(std::size_t r, std::size_t c) { return a_[r * n_ + c]; }

  // Zeroes column k below its subdiagonal with I − s v v^T on rows and columns k+1 .. n−1; v stays in row k.
  void reflect(std::size_t k) {
    const std::size_t m = n_ - k - 1;
    std::vector<double> v(m), w(m);
    double scale = 0;
    for (std::size_t r = 0; r < m; ++r) scale = std::max(scale, std::abs(v[r] = at(k + 1 + r, k)));
    reflector_scale_[k] = 0;
    off[k] = v[0];
    double tail = 0;
    for (std::size_t r = 1; r < m; ++r) tail = std::max(tail, std::abs(v[r]));
    if (tail == 0) return;
    double norm = 0;
    for (double& e : v) {
      e /= scale;
      norm += e * e;
    }
    norm = std::sqrt(norm);
    const double alpha = v[0] > 0 ? -norm : norm;
    off[k] = alpha * scale;
    v[0] -= alpha;
    double length = 0;
    for (const double e : v) length += e * e;
    const double s = 2 / length;
    for (std::size_t r = 0; r < m; ++r) {  // w = s A v
      double sum = 0;
      const double* row = &at(k + 1 + r, k + 1);
      for (std::size_t c = 0; c < m; ++c) sum += row[c] * v[c];
      w[r] = s * sum;
    }
    double half = 0;
    for (std::size_t r = 0; r < m; ++r) half += v[r] * w[r];
    half *= s / 2;
    for (std::size_t r = 0; r < m; ++r) w[r] -= half * v[r];
    for (std::size_t r = 0; r < m; ++r) {
      double* row = &at(k + 1 + r, k + 1);
      for (std::size_t c = 0; c < m; ++c) row[c] -= v[r] * w[c] + w[r] * v[c];
    }
    for (std::size_t r = 0; r < m; ++r) at(k, k + 1 + r) = v[r];
    reflector_scale_[k] = s;
  }

  // Q = H_0 H_1 ... from the reflectors, built from the last one, as rows of Q^T.
  void accumulate() {
    std::vector<double> q(n_ * n_);
    for (std::size_t k = 0; k < n_; ++k) q[k * n_ + k] = 1;
    for (std::size_t k = n_ < 2 ? 0 : n_ - 2; k-- > 0;) {
      const double s = reflector_scale_[k];
      if (s == 0) continue;
      const double* v = &at(k, k + 1);
      const std::size_t m = n_ - k - 1;
      for (std::size_t e = k + 1; e < n_; ++e) {  // row e of Q^T is column e of Q
        double* row = &q[e * n_ + k + 1];
        double sum = 0;
        for (std::size_t c = 0; c < m; ++c) sum += v[c] * row[c];
        sum *= s;
        for (std::size_t c = 0; c < m; ++c) row[c] -= sum * v[c];
      }
    }
    a_.swap(q);
  }

  std::vector<double>& a_;
  std::size_t n_;
  std::vector<double> reflector_scale_;
};

// Implicit QL with Wilkinson's shift; rotates the rows of `vectors` along.
void diagonalise(std::vector<double>& d, std::vector<double>& e, std::vector<double>& vectors) {
  const std::size_t n = d.size();
  constexpr int kMaxSweeps = 60;
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  for (std::size_t l = 0; l < n; ++l) {
    for (int sweep = 0;; ++sweep) {
      std::size_t m = l;
      while (m + 1 < n && std::abs(e[m]) > kEpsilon * (std::abs(d[m]) + std::abs(d[m + 1]))) ++m;
      if (m == l) break;
      if (sweep == kMaxSweeps)
        throw std::runtime_error("an eigenvalue of a symmetric matrix does not converge");
      double g = (d[l + 1] - d[l]) / (2 * e[l]);
      g = d[m] - d[l] + e[l] / (g + std::copysign(std::hypot(g, 1.0), g));
      double s = 1, c = 1, p = 0;
      bool split = false;
      for (std::size_t i = m; i-- > l;) {
        double f = s * e[i];
        const double b = c * e[i], r = std::hypot(f, g);
        e[i + 1] = r;
        if (r == 0) {
          d[i + 1] -= p;
          e[m] = 0;
          split = true;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        const double t = (d[i] - g) * s + 2 * c * b;
        p = s * t;
        d[i + 1] = g + p;
        g = c * t - b;
        double* low = &vectors[i * n];
        double* high = &vectors[(i + 1) * n];
        for (std::size_t k = 0; k < n; ++k) {
          f = high[k];
          high[k] = s * low[k] + c * f;
          low[k] = c * low[k] - s * f;
        }
      }
      if (split) continue;
      d[l] -= p;
      e[l] = g;
      e[m] = 0;
    }
  }
}

}  // namespace

void symmetric_eigen(std::vector<double> matrix, std::size_t n, std::span<double> values,
                     std::span<double> vectors) {
  if (matrix.size() != n * n || values.size() != n || vectors.size() != n * n)
    throw std::logic_error("symmetric_eigen: the sizes do not fit together");
  Tridiagonalisation t(matrix, n);
  diagonalise(t.diagonal, t.off, matrix);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return t.diagonal[a] < t.diagonal[b]; });
  for (std::size_t e = 0; e < n; ++e) {
    values[e] = t.diagonal[order[e]];
    std::copy_n(&matrix[order[e] * n], n, &vectors[e * n]);
  }
}

}  // namespace gradwire
