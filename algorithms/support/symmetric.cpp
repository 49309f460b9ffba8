#include "algorithms/support/symmetric.h"

#include <algorithm>
#include <cmath>

#include "compressors/symmetric_eigen.h"

namespace gradwire {

template <class Real>
double frobenius_norm(std::span<const Real> upper, std::size_t d) {
  double diagonal = 0, rest = 0;
  const Real* row = upper.data();
  for (std::size_t a = 0; a < d; ++a) {
    diagonal += static_cast<double>(row[0]) * static_cast<double>(row[0]);
    // Uses one sum per lane; with a single sum, each addition would wait for the previous one.
    constexpr std::size_t kLanes = 8;
    double sums[kLanes] = {};
    const std::size_t width = d - a;
    std::size_t k = 1;
    for (; k + kLanes <= width; k += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        sums[lane] += static_cast<double>(row[k + lane]) * static_cast<double>(row[k + lane]);
    for (; k < width; ++k) sums[0] += static_cast<double>(row[k]) * static_cast<double>(row[k]);
    for (const double part : sums) rest += part;
    row += width;
  }
  return std::sqrt(diagonal + 2 * rest);
}

// Computes U row by row from the top. Subtracts the finished rows above from each row, several at a time. So
// the entries of the row are loaded and stored only once for several rows above.
template <class Real>
bool SymmetricSolver::factor(std::span<const Real> upper, double shift) {
  factor_.resize(d_ * d_);
  const Real* from = upper.data();
  for (std::size_t a = 0; a < d_; ++a) {
    for (std::size_t k = a; k < d_; ++k) factor_[a * d_ + k] = static_cast<double>(*from++);
    factor_[a * d_ + a] += shift;
  }
  for (std::size_t a = 0; a < d_; ++a) {
    double* __restrict row = &factor_[a * d_];
    constexpr std::size_t kTogether = 8;
    std::size_t done = 0;
    for (; done + kTogether <= a; done += kTogether) {
      const double* const above = &factor_[done * d_];
      double scale[kTogether];
      for (std::size_t r = 0; r < kTogether; ++r) scale[r] = above[r * d_ + a];
      for (std::size_t k = a; k < d_; ++k) {
        double sum = scale[0] * above[k];
        for (std::size_t r = 1; r < kTogether; ++r) sum += scale[r] * above[r * d_ + k];
        row[k] -= sum;
      }
    }
    for (; done < a; ++done) {
      const double* const above = &factor_[done * d_];
      for (std::size_t k = a; k < d_; ++k) row[k] -= above[a] * above[k];
    }
    if (!(row[a] > 0) || !std::isfinite(row[a])) return false;
    const double inverse = 1 / std::sqrt(row[a]);
    for (std::size_t k = a; k < d_; ++k) row[k] *= inverse;
  }
  return true;
}

void SymmetricSolver::substitute(std::span<double> b) const {
  for (std::size_t a = 0; a < d_; ++a) {  // U^T y = b
    const double* row = &factor_[a * d_];
    b[a] /= row[a];
    for (std::size_t k = a + 1; k < d_; ++k) b[k] -= row[k] * b[a];
  }
  for (std::size_t a = d_; a-- > 0;) {  // U v = y
    const double* row = &factor_[a * d_];
    double sum = b[a];
    for (std::size_t k = a + 1; k < d_; ++k) sum -= row[k] * b[k];
    b[a] = sum / row[a];
  }
}

template <class Real>
bool SymmetricSolver::solve(std::span<const Real> upper, double shift, std::span<double> b) {
  if (!factor(upper, shift)) return false;
  substitute(b);
  return true;
}

template <class Real>
void SymmetricSolver::solve_projected(std::span<const Real> upper, double mu, std::span<double> b) {
  // If A ⪰ mu I up to rounding, all eigenvalues can stay as they are.
  constexpr double kSlack = 1e-9;
  if (factor(upper, -mu * (1 - kSlack)) && factor(upper, 0)) return substitute(b);
  std::vector<double> matrix(d_ * d_);
  const Real* from = upper.data();
  for (std::size_t a = 0; a < d_; ++a)
    for (std::size_t k = a; k < d_; ++k)
      matrix[a * d_ + k] = matrix[k * d_ + a] = static_cast<double>(*from++);
  std::vector<double> values(d_), work, result(d_);
  symmetric_eigenvectors(matrix, d_, work, values);
  for (std::size_t e = 0; e < d_; ++e) {
    const double* v = &matrix[e * d_];
    double along = 0;
    for (std::size_t k = 0; k < d_; ++k) along += v[k] * b[k];
    along /= std::max(values[e], mu);
    for (std::size_t k = 0; k < d_; ++k) result[k] += along * v[k];
  }
  std::copy(result.begin(), result.end(), b.begin());
}

template double frobenius_norm(std::span<const float>, std::size_t);
template double frobenius_norm(std::span<const double>, std::size_t);
template bool SymmetricSolver::solve(std::span<const float>, double, std::span<double>);
template bool SymmetricSolver::solve(std::span<const double>, double, std::span<double>);
template void SymmetricSolver::solve_projected(std::span<const float>, double, std::span<double>);
template void SymmetricSolver::solve_projected(std::span<const double>, double, std::span<double>);

}  // namespace gradwire
