#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gradwire {

// Computes the eigenvectors of a symmetric matrix, by Householder reflections to a tridiagonal matrix and QL
// steps with Wilkinson's shift (Golub and Van Loan, Matrix Computations, 8.3). Takes O(m^3) steps.
//   a: shape (m, m), row by row; overwritten with the eigenvectors as rows, by descending eigenvalue.
//   work: resized as needed.
//   values: shape (m), gets the eigenvalues in the same order; may be empty.
void symmetric_eigenvectors(std::span<double> a, std::size_t m, std::vector<double>& work,
                            std::span<double> values = {});

}  // namespace gradwire
