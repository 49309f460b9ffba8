#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gradwire {

// Eigenvectors of a symmetric matrix, by Householder reflections to a tridiagonal one and QL steps with
// Wilkinson's shift (Golub and Van Loan, Matrix Computations, 8.3). O(m^3).
//   a: shape (m, m), row by row; overwritten with the eigenvectors, one a row, by descending eigenvalue.
//   work: resized to what is needed.
//   values: shape (m), the eigenvalues in the same order; or empty.
void symmetric_eigenvectors(std::span<double> a, std::size_t m, std::vector<double>& work,
                            std::span<double> values = {});

}  // namespace gradwire
