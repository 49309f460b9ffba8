#include "engine/smoothness/eigen.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numbers>
#include <vector>

#include "base/random.h"
#include "tests/engine/jacobi.h"

namespace gradwire {
namespace {

using Matrix = DenseRows;

SymmetricOperator product(const Matrix& a) {
  return [&a](std::span<const double> v, std::span<double> out) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      out[i] = 0;
      for (std::size_t j = 0; j < a.size(); ++j) out[i] += a[i][j] * v[j];
    }
  };
}

std::vector<double> all_eigenvalues(const Matrix& a) {
  std::vector<double> flat;
  for (const auto& row : a) flat.insert(flat.end(), row.begin(), row.end());
  const Tridiagonal t = tridiagonalize(flat, a.size());
  std::vector<double> values;
  for (std::size_t k = 0; k < a.size(); ++k) values.push_back(eigenvalue(t, k));
  return values;
}

// Returns Q diag(spectrum) Q^T with Q a product of random reflections.
Matrix with_spectrum(const std::vector<double>& spectrum, std::uint64_t seed = 3) {
  const std::size_t n = spectrum.size();
  Matrix a(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) a[i][i] = spectrum[i];
  Random random(seed, "spectrum");
  for (int reflection = 0; reflection < 4; ++reflection) {
    std::vector<double> v(n);
    double norm = 0;
    for (double& entry : v) {
      entry = random.normal();
      norm += entry * entry;
    }
    for (int side = 0; side < 2; ++side) {
      for (std::size_t i = 0; i < n; ++i) {
        double overlap = 0;
        for (std::size_t j = 0; j < n; ++j) overlap += a[i][j] * v[j];
        for (std::size_t j = 0; j < n; ++j) a[i][j] -= 2 * overlap / norm * v[j];
      }
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < i; ++j) std::swap(a[i][j], a[j][i]);
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) a[i][j] = a[j][i] = (a[i][j] + a[j][i]) / 2;
  }
  return a;
}

void expect_spectrum(const Matrix& a, std::vector<double> spectrum) {
  std::sort(spectrum.begin(), spectrum.end());
  const double scale = std::max(std::abs(spectrum.front()), std::abs(spectrum.back()));
  const std::vector<double> dense = all_eigenvalues(a), jacobi = jacobi_eigenvalues(a);
  for (std::size_t k = 0; k < a.size(); ++k) {
    EXPECT_NEAR(dense[k], spectrum[k], 1e-13 * scale) << k;
    EXPECT_NEAR(dense[k], jacobi[k], 1e-13 * scale) << k;
  }
  EXPECT_NEAR(largest_eigenvalue(a.size(), product(a)), spectrum.back(), 1e-12 * spectrum.back());
}

TEST(Eigen, LanczosDenseAndJacobiAgreeOnSeparatedSpectra) {
  std::vector<double> spectrum;
  for (int k = 1; k <= 40; ++k) spectrum.push_back(k * k / 7.0);
  expect_spectrum(with_spectrum(spectrum), spectrum);
}

TEST(Eigen, FindsRepeatedAndClusteredEigenvalues) {
  expect_spectrum(with_spectrum({5, 5, 5, 5, 2, 2, 1}), {5, 5, 5, 5, 2, 2, 1});
  expect_spectrum(with_spectrum(std::vector<double>(20, 3.0)), std::vector<double>(20, 3.0));
  std::vector<double> clustered = {1, 1 - 1e-3, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12};
  for (int k = 0; k < 35; ++k) clustered.push_back(0.99 * k / 35);
  expect_spectrum(with_spectrum(clustered), clustered);
}

TEST(Eigen, IsAccurateForRankDeficientTinyAndHugeMatrices) {
  std::vector<double> deficient(30, 0.0);
  deficient[3] = 4;
  deficient[9] = 1e-3;
  expect_spectrum(with_spectrum(deficient), deficient);
  for (const double scale : {1e-160, 1e-30, 1e30, 1e150}) {
    expect_spectrum(with_spectrum({scale, scale / 2, scale / 4, 0}), {scale, scale / 2, scale / 4, 0});
  }
}

TEST(Eigen, HandlesDegenerateSizes) {
  EXPECT_EQ(largest_eigenvalue(0, product({})), 0);
  const Matrix one = {{7}};
  EXPECT_DOUBLE_EQ(largest_eigenvalue(1, product(one)), 7);
  EXPECT_NEAR(all_eigenvalues(one)[0], 7, 1e-15);
  const Matrix zero(6, std::vector<double>(6));
  EXPECT_EQ(largest_eigenvalue(6, product(zero)), 0);
  EXPECT_EQ(all_eigenvalues(zero), std::vector<double>(6));
}

TEST(Eigen, DenseSolverHandlesIndefiniteAndAlreadyTridiagonalMatrices) {
  const std::size_t n = 25;
  Matrix t(n, std::vector<double>(n));
  std::vector<double> spectrum;
  for (std::size_t i = 0; i < n; ++i) {
    t[i][i] = -1;
    if (i > 0) t[i][i - 1] = t[i - 1][i] = -1;
    spectrum.push_back(-1 + 2 * std::cos(static_cast<double>(i + 1) * std::numbers::pi / (n + 1)));
  }
  std::sort(spectrum.begin(), spectrum.end());
  const auto values = all_eigenvalues(t);
  for (std::size_t k = 0; k < n; ++k) EXPECT_NEAR(values[k], spectrum[k], 1e-14);
}

TEST(Eigen, LanczosConvergesIfTheEdgeOfTheSpectrumIsDense) {
  // The eigenvalues of tridiag(-1, 2, -1) cluster at 4 with relative gaps of 1e-4, which takes hundreds of
  // products.
  constexpr std::size_t n = 300;
  const auto apply = [](std::span<const double> v, std::span<double> out) {
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = 2 * v[i] - (i > 0 ? v[i - 1] : 0) - (i + 1 < n ? v[i + 1] : 0);
    }
  };
  const double exact = 4 * std::pow(std::cos(std::numbers::pi / (2 * (n + 1))), 2);
  EXPECT_NEAR(largest_eigenvalue(n, apply), exact, 1e-12 * exact);
}

}  // namespace
}  // namespace gradwire
