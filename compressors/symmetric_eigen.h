#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gradwire {

// Eigenvalues, ascending, and orthonormal eigenvectors of the symmetric `matrix` (n x n, row by row, both
// triangles): values (n), vectors (n, n) with the e-th eigenvector in row e. Householder reflections and the
// implicit QL algorithm (Bowdler, Martin, Reinsch, Wilkinson, 1968): about 9 n^3 multiply-adds. Throws
// std::runtime_error when an eigenvalue does not converge, as with entries that are not finite.
void symmetric_eigen(std::vector<double> matrix, std::size_t n, std::span<double> values,
                     std::span<double> vectors);

}  // namespace gradwire
