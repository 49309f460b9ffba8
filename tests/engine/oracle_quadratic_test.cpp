#include <cmath>
#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

#include "engine/oracles/quadratic.h"
#include "engine/smoothness/eigen.h"
#include "tests/engine/oracle_checks.h"

namespace gradwire {
namespace {

QuadraticFamily family_of(std::size_t dim, std::uint32_t clients, double heterogeneity,
                          double lambda = 1e-3) {
  return {{.dim = dim, .lambda = lambda, .heterogeneity = heterogeneity}, clients, 42};
}

// Returns A_i as a matrix: every column is the gradient at a unit vector plus b_i.
DenseRows matrix_of(QuadraticOracle<double>& oracle) {
  const std::size_t d = oracle.dim();
  const auto at_zero = evaluate(oracle, std::vector<double>(d)).gradient;
  DenseRows matrix;
  for (std::size_t k = 0; k < d; ++k) {
    std::vector<double> unit(d);
    unit[k] = 1;
    matrix.push_back(evaluate(oracle, unit).gradient);
    for (std::size_t j = 0; j < d; ++j) matrix[k][j] -= at_zero[j];
  }
  return matrix;
}

std::vector<double> eigenvalues(const DenseRows& rows) {
  std::vector<double> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  const Tridiagonal t = tridiagonalize(flat, rows.size());
  std::vector<double> values;
  for (std::size_t k = 0; k < rows.size(); ++k) values.push_back(eigenvalue(t, k));
  return values;
}

TEST(Quadratic, GradientMatchesFiniteDifferencesInEveryDimension) {
  for (const std::size_t dim : {1, 2, 3, 8, 19}) {
    const QuadraticFamily family = family_of(dim, 3, 0.8);
    for (std::uint32_t client = 0; client < 3; ++client) {
      QuadraticOracle<double> oracle(family, client);
      expect_matches_finite_differences(oracle, random_point(dim, 2, dim));
      expect_batches_agree(oracle, random_point(dim, 2, dim));
    }
  }
}

TEST(Quadratic, HasTheTridiagonalMatrixOfThePaper) {
  const std::size_t d = 7;
  const QuadraticFamily family = family_of(d, 2, 0.5);
  QuadraticOracle<double> oracle(family, 1);
  const DenseRows a = matrix_of(oracle);
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j < d; ++j) {
      const double t = i == j ? 2 : (i + 1 == j || j + 1 == i ? -1 : 0);
      EXPECT_NEAR(a[i][j], family.nu(1) / 4 * t + (i == j ? family.shift() : 0), 1e-15);
    }
  }
  const auto at_zero = evaluate(oracle, std::vector<double>(d));
  EXPECT_EQ(at_zero.loss, 0);
  EXPECT_EQ(at_zero.gradient[0], -family.linear(1));
  EXPECT_EQ(at_zero.gradient[1], 0);
}

TEST(Quadratic, ClosedFormConstantsAreTheEigenvaluesOfTheMatrices) {
  // Heterogeneity 3 makes some nu_i negative, and these clients nonconvex.
  for (const double heterogeneity : {0.0, 0.3, 3.0}) {
    const std::size_t d = 12;
    const std::uint32_t n = 5;
    const double lambda = 1e-3;
    const QuadraticFamily family = family_of(d, n, heterogeneity, lambda);
    const std::vector<double> weights = {0.1, 0.2, 0.3, 0.15, 0.25};
    DenseRows mean(d, std::vector<double>(d)), weighted = mean;
    bool convex = true;
    const Smoothness total = family.total({});
    for (std::uint32_t i = 0; i < n; ++i) {
      QuadraticOracle<double> oracle(family, i);
      const DenseRows a = matrix_of(oracle);
      const auto values = eigenvalues(a);
      const double largest = std::max(std::abs(values.front()), std::abs(values.back()));
      EXPECT_NEAR(family.client(i).L_i, largest, 1e-12 * largest);
      EXPECT_NEAR(family.client(i).mu_i, std::max(0.0, values.front()), 1e-12);
      EXPECT_EQ(total.L_i[i], family.client(i).L_i);
      convex = convex && values.front() > -1e-12;
      for (std::size_t r = 0; r < d; ++r) {
        for (std::size_t c = 0; c < d; ++c) {
          mean[r][c] += a[r][c] / n;
          weighted[r][c] += weights[i] * a[r][c];
        }
      }
    }
    const auto values = eigenvalues(mean);
    EXPECT_NEAR(total.L, std::max(std::abs(values.front()), values.back()), 1e-12 * total.L);
    EXPECT_NEAR(total.mu, values.front(), 1e-12);
    EXPECT_EQ(total.mu, lambda);
    EXPECT_EQ(total.convex, convex);
    const auto weighted_values = eigenvalues(weighted);
    const Smoothness weighted_total = family.total(weights);
    EXPECT_NEAR(weighted_total.L,
                std::max(std::abs(weighted_values.front()), std::abs(weighted_values.back())),
                1e-12 * weighted_total.L);
    EXPECT_NEAR(weighted_total.mu, std::max(0.0, weighted_values.front()), 1e-12);
  }
}

class QuadraticVariance : public ::testing::TestWithParam<std::vector<double>> {};
INSTANTIATE_TEST_SUITE_P(Weights, QuadraticVariance,
                         ::testing::Values(std::vector<double>{}, std::vector<double>{0.1, 0.2, 0.3, 0.4}));

TEST_P(QuadraticVariance, BoundsItsQuotientsTightly) {
  const std::size_t d = 10;
  const std::uint32_t n = 4;
  const std::vector<double> w = GetParam().empty() ? std::vector<double>(n, 0.25) : GetParam();
  const QuadraticFamily family = family_of(d, n, 0.5);
  double best_plus = 0, best_pm = 0;
  for (std::size_t k = 1; k <= d; ++k) {  // along the eigenvectors of T, where the quotients are largest
    std::vector<double> v(d);
    for (std::size_t j = 0; j < d; ++j) v[j] = std::sin(static_cast<double>(k * (j + 1)) * M_PI / (d + 1));
    double norm = 0, squares = 0;
    for (const double entry : v) norm += entry * entry;
    std::vector<double> mean(d);
    for (std::uint32_t i = 0; i < n; ++i) {
      QuadraticOracle<double> oracle(family, i);
      const auto at_v = evaluate(oracle, v).gradient,
                 at_zero = evaluate(oracle, std::vector<double>(d)).gradient;
      for (std::size_t j = 0; j < d; ++j) {
        squares += w[i] * std::pow(at_v[j] - at_zero[j], 2);
        mean[j] += w[i] * (at_v[j] - at_zero[j]);
      }
    }
    double square_of_mean = 0;
    for (const double entry : mean) square_of_mean += entry * entry;
    best_plus = std::max(best_plus, squares / norm);
    best_pm = std::max(best_pm, (squares - square_of_mean) / norm);
  }
  const Smoothness total = family.total(GetParam());
  EXPECT_NEAR(total.L_plus.value(), std::sqrt(best_plus), 1e-12);
  EXPECT_NEAR(total.L_pm.value(), std::sqrt(best_pm), 1e-12);
  EXPECT_EQ(total.L_s, total.L_tilde());
  EXPECT_EQ(total.L_sample_max, total.L_max());
}

TEST(Quadratic, GradientDescentAtOneOverLReachesTheTridiagonalSolution) {
  const std::size_t d = 20;
  const std::uint32_t n = 3;
  const QuadraticFamily family = family_of(d, n, 0.4, 0.05);
  double diagonal = 0, off_diagonal = 0, linear = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    diagonal += (family.nu(i) / 2 + family.shift()) / n;
    off_diagonal += -family.nu(i) / 4 / n;
    linear += family.linear(i) / n;
  }
  // Thomas's algorithm for A x = b e_1; then f* = -b^T x / 2.
  std::vector<double> factor(d), right(d), solution(d);
  factor[0] = off_diagonal / diagonal;
  right[0] = linear / diagonal;
  for (std::size_t j = 1; j < d; ++j) {
    const double pivot = diagonal - off_diagonal * factor[j - 1];
    factor[j] = off_diagonal / pivot;
    right[j] = -off_diagonal * right[j - 1] / pivot;
  }
  solution[d - 1] = right[d - 1];
  for (std::size_t j = d - 1; j-- > 0;) solution[j] = right[j] - factor[j] * solution[j + 1];
  const double best = -linear * solution[0] / 2;

  const double step = 1 / family.total({}).L;
  std::vector<double> x(d);
  x[0] = std::sqrt(d);
  double loss = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<double> mean(d);
    loss = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      QuadraticOracle<double> oracle(family, i);
      const auto at = evaluate(oracle, x);
      loss += at.loss / n;
      for (std::size_t j = 0; j < d; ++j) mean[j] += at.gradient[j] / n;
    }
    for (std::size_t j = 0; j < d; ++j) x[j] -= step * mean[j];
  }
  EXPECT_NEAR(loss, best, 1e-13);
  for (std::size_t j = 0; j < d; ++j) EXPECT_NEAR(x[j], solution[j], 1e-10);
}

TEST(Quadratic, FamilyDependsOnlyOnTheSeedAndFloatAgrees) {
  const QuadraticShape shape{.dim = 9, .lambda = 1e-3, .heterogeneity = 0.5};
  const QuadraticFamily first(shape, 4, 42), second(shape, 4, 42), other(shape, 4, 43);
  EXPECT_EQ(first.nu(3), second.nu(3));
  EXPECT_EQ(first.linear(3), second.linear(3));
  EXPECT_NE(first.nu(3), other.nu(3));
  QuadraticOracle<float> narrow(first, 3);
  QuadraticOracle<double> wide(first, 3);
  expect_float_agrees(narrow, wide, random_point(9, 1));
}

TEST(Quadratic, SamplesHaveIndependentNormalNoiseAndFullGradientsHaveNone) {
  QuadraticShape shape{.dim = 9, .lambda = 1e-3, .heterogeneity = 0.5};
  QuadraticOracle<double> plain(QuadraticFamily(shape, 4, 42), 3);
  shape.noise = 0.5;
  const QuadraticFamily family(shape, 4, 42);
  QuadraticOracle<double> noisy(family, 3), other(family, 2);
  const std::vector<double> x = random_point(9, 1);
  std::vector<double> exact(9), g(9), again(9);
  const double loss = plain.loss_and_gradient(x, {}, exact);
  EXPECT_EQ(noisy.loss_and_gradient(x, {}, g), loss);
  EXPECT_EQ(g, exact);
  constexpr std::uint32_t kSamples = 4000;
  std::vector<double> mean(9);
  double square = 0, neighbours = 0;
  for (std::uint32_t s = 0; s < kSamples; ++s) {
    const double with_noise = noisy.loss_and_gradient(x, {&s, 1}, g);
    double product = 0;  // xi^T x
    for (std::size_t j = 0; j < 9; ++j) {
      mean[j] += (g[j] - exact[j]) / kSamples;
      square += std::pow(g[j] - exact[j], 2) / (9 * kSamples);
      product += (g[j] - exact[j]) * x[j];
    }
    neighbours += (g[0] - exact[0]) * (g[1] - exact[1]) / kSamples;
    EXPECT_NEAR(with_noise, loss + product, 1e-12) << "it is the gradient of the returned value";
  }
  for (const double m : mean) EXPECT_NEAR(m, 0, 0.03);
  EXPECT_NEAR(square, 0.25, 0.006);
  EXPECT_NEAR(neighbours, 0, 0.015);
  const std::vector<std::uint32_t> pair = {7, 8};
  const std::uint32_t seven = 7, eight = 8;
  noisy.loss_and_gradient(x, pair, g);
  noisy.loss_and_gradient(x, {&seven, 1}, again);
  std::vector<double> half(9);
  noisy.loss_and_gradient(x, {&eight, 1}, half);
  for (std::size_t j = 0; j < 9; ++j) EXPECT_NEAR(g[j], (again[j] + half[j]) / 2, 1e-14);
  other.bind(3);
  other.loss_and_gradient(x, {&seven, 1}, g);
  EXPECT_EQ(g, again);
  const double noise = g[4] - exact[4];
  other.bind(2);
  other.loss_and_gradient(x, {&seven, 1}, g);
  other.loss_and_gradient(x, {}, exact);
  EXPECT_GT(std::abs(g[4] - exact[4] - noise), 1e-3) << "another client has other noise";
}

}  // namespace
}  // namespace gradwire
