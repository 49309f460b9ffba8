// Operations of second-order algorithms on symmetric matrices of order d, computed in double. A matrix is
// stored as its upper triangle, row by row (row a holds the columns a .. d−1).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gradwire {

// Returns ‖A‖_F; entries off the diagonal count twice.
template <class Real>
double frobenius_norm(std::span<const Real> upper, std::size_t d);

// A solver for matrices of order d. Its work space is allocated at the first use.
class SymmetricSolver {
 public:
  explicit SymmetricSolver(std::size_t d) : d_(d) {}

  // Replaces b, shape (d), by (A + shift I)^{-1} b, using Cholesky. Returns false, with b unchanged, if
  // A + shift I is not positive definite.
  template <class Real>
  bool solve(std::span<const Real> upper, double shift, std::span<double> b);

  // Replaces b by [A]_mu^{-1} b, where [A]_mu is A with its eigenvalues raised to at least mu > 0. Costs one
  // or two Cholesky factorizations if A ⪰ mu I, else an eigendecomposition.
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
