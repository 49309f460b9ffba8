// Symmetric matrices of order d, stored as the upper triangle row by row (row a holds the columns a .. d−1):
// what second-order algorithms need of them, computed in double.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gradwire {

// ‖A‖_F: entries off the diagonal count twice.
template <class Real>
double frobenius_norm(std::span<const Real> upper, std::size_t d);

// Solvers of order d and their work space, which is allocated at the first use.
class SymmetricSolver {
 public:
  explicit SymmetricSolver(std::size_t d) : d_(d) {}

  // Replaces b, shape (d), by (A + shift I)^{-1} b, by Cholesky. False: A + shift I is not positive definite,
  // and b is unchanged.
  template <class Real>
  bool solve(std::span<const Real> upper, double shift, std::span<double> b);

  // Replaces b by [A]_mu^{-1} b, where [A]_mu is A with its eigenvalues raised to at least mu > 0. Costs one
  // or two Cholesky factorisations where A ⪰ mu I, else an eigendecomposition.
  template <class Real>
  void solve_projected(std::span<const Real> upper, double mu, std::span<double> b);

 private:
  template <class Real>
  bool factor(std::span<const Real> upper, double shift);
  void substitute(std::span<double> b) const;

  std::size_t d_;
  std::vector<double> factor_;  // (d, d), row by row: U of A + shift I = U^T U
};

}  // namespace gradwire
