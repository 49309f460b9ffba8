// A reference for the eigenvalue solvers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "tests/engine/oracle_checks.h"

namespace gradwire {

// Returns the eigenvalues of a symmetric matrix, ascending, by cyclic Jacobi rotations until the matrix is
// diagonal.
inline std::vector<double> jacobi_eigenvalues(DenseRows a) {
  const std::size_t n = a.size();
  for (int sweep = 0; sweep < 60; ++sweep) {
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a[p][q] == 0) continue;
        const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::hypot(1, theta));
        const double c = 1 / std::hypot(1, t), s = t * c;
        for (std::size_t k = 0; k < n; ++k) {
          const double x = a[k][p], y = a[k][q];
          a[k][p] = c * x - s * y;
          a[k][q] = s * x + c * y;
        }
        for (std::size_t k = 0; k < n; ++k) {
          const double x = a[p][k], y = a[q][k];
          a[p][k] = c * x - s * y;
          a[q][k] = s * x + c * y;
        }
      }
    }
  }
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(a[i][i]);
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace gradwire
