// Eigenvalues of symmetric matrices for smoothness constants: the largest one of any operator, and any one of
// a matrix that is small enough to be stored.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace gradwire {

struct Tridiagonal {
  std::vector<double> diagonal;      // (n)
  std::vector<double> off_diagonal;  // (n - 1)

  std::size_t size() const { return diagonal.size(); }
};

// Returns the number of eigenvalues below x (Sturm count, by the signs of the pivots of T - x I).
std::size_t count_below(const Tridiagonal& matrix, double x);

// Returns eigenvalue number `index`, counted from the smallest, by bisection. The error is a few ulp of the
// largest absolute eigenvalue. REQUIRES: index < size().
double eigenvalue(const Tridiagonal& matrix, std::size_t index);

// Returns the tridiagonal matrix with the eigenvalues of the symmetric `matrix` (n x n, both triangles), by
// Householder reflections. Takes 4/3 n^3 multiply-adds and no memory in addition to the argument.
Tridiagonal tridiagonalize(std::vector<double> matrix, std::size_t n);

// Computes out = A v for a symmetric positive semidefinite A; both vectors have length n.
using SymmetricOperator = std::function<void(std::span<const double> v, std::span<double> out)>;

// Returns the largest eigenvalue of A (n x n), by Lanczos with full reorthogonalisation. Stops when the
// residual proves that A has an eigenvalue within a relative distance of 1e-13. Takes tens of products with
// A. The result is deterministic.
double largest_eigenvalue(std::size_t n, const SymmetricOperator& apply);

}  // namespace gradwire
