#include "engine/smoothness.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>
#include <vector>

#include "engine/eigen.h"
#include "engine/problem.h"
#include "tests/oracle_checks.h"

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

// The naive twin of both solvers: cyclic Jacobi rotations until nothing is left off the diagonal.
std::vector<double> jacobi_eigenvalues(Matrix a) {
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

// Q diag(spectrum) Q^T with Q a product of random reflections.
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

TEST(Eigen, RepeatedAndClusteredEigenvaluesAreFound) {
  expect_spectrum(with_spectrum({5, 5, 5, 5, 2, 2, 1}), {5, 5, 5, 5, 2, 2, 1});
  expect_spectrum(with_spectrum(std::vector<double>(20, 3.0)), std::vector<double>(20, 3.0));
  std::vector<double> clustered = {1, 1 - 1e-3, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12};
  for (int k = 0; k < 35; ++k) clustered.push_back(0.99 * k / 35);
  expect_spectrum(with_spectrum(clustered), clustered);
}

TEST(Eigen, RankDeficientTinyAndHugeMatricesKeepTheirRelativeAccuracy) {
  std::vector<double> deficient(30, 0.0);
  deficient[3] = 4;
  deficient[9] = 1e-3;
  expect_spectrum(with_spectrum(deficient), deficient);
  for (const double scale : {1e-160, 1e-30, 1e30, 1e150}) {
    expect_spectrum(with_spectrum({scale, scale / 2, scale / 4, 0}), {scale, scale / 2, scale / 4, 0});
  }
}

TEST(Eigen, DegenerateSizes) {
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

TEST(Eigen, LanczosConvergesWhereTheEdgeOfTheSpectrumIsDense) {
  // The eigenvalues of tridiag(-1, 2, -1) crowd at 4 with relative gaps of 1e-4: products number in the
  // hundreds.
  constexpr std::size_t n = 300;
  const auto apply = [](std::span<const double> v, std::span<double> out) {
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = 2 * v[i] - (i > 0 ? v[i - 1] : 0) - (i + 1 < n ? v[i + 1] : 0);
    }
  };
  const double exact = 4 * std::pow(std::cos(std::numbers::pi / (2 * (n + 1))), 2);
  EXPECT_NEAR(largest_eigenvalue(n, apply), exact, 1e-12 * exact);
}

constexpr std::size_t kColumns = 7;

struct Problem {
  ProblemSpec spec;
  Agreement agreement{.columns = kColumns, .labels = {0, 1}};
  std::vector<Part> parts;
};

Problem problem_of(const std::string& kind, Regularizer regularizer, double lambda,
                   const std::vector<std::size_t>& sizes = {12, 5, 30}) {
  Problem problem;
  problem.spec.kind = kind;
  problem.spec.regularizer = regularizer;
  problem.spec.lambda = lambda;
  problem.spec.clients = static_cast<std::uint32_t>(sizes.size());
  for (const std::size_t rows : sizes) {
    problem.parts.push_back({random_data(rows, kColumns, 0.6, {0, 1}, rows), {}});
  }
  return problem;
}

// sum_i weights[i] / m_i A_i^T A_i
Matrix naive_gram(const std::vector<Part>& parts, const std::vector<double>& weights) {
  Matrix gram(kColumns, std::vector<double>(kColumns));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const DenseRows rows = dense_rows(parts[i].train);
    for (const auto& row : rows) {
      for (std::size_t j = 0; j < kColumns; ++j) {
        for (std::size_t k = 0; k < kColumns; ++k) {
          gram[j][k] += weights[i] / static_cast<double>(rows.size()) * row[j] * row[k];
        }
      }
    }
  }
  return gram;
}

struct Case {
  const char* kind;
  Regularizer regularizer;
  double curvature;      // of the loss
  double largest_ridge;  // what R adds to L per unit of lambda
};
class Constants : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Constants,
                         testing::Values(Case{"logistic", Regularizer::kNone, 0.25, 0},
                                         Case{"logistic", Regularizer::kL2, 0.25, 1},
                                         Case{"logistic", Regularizer::kNonconvex, 0.25, 2},
                                         Case{"least_squares", Regularizer::kNone, 1, 0},
                                         Case{"least_squares", Regularizer::kL2, 1, 1},
                                         Case{"least_squares", Regularizer::kNonconvex, 1, 2}));

TEST_P(Constants, EqualTheSpectraOfDenseGramMatrices) {
  const double lambda = 0.3;
  const Case& c = GetParam();
  const Problem p = problem_of(c.kind, c.regularizer, lambda);
  const double ridge = c.largest_ridge * lambda;
  const auto mu_of = [&](const std::vector<double>& spectrum) {
    if (c.regularizer == Regularizer::kNonconvex) return 0.0;
    if (c.curvature != 1) return ridge;
    if (ridge > 0) return std::max(0.0, spectrum.front()) + ridge;
    return *std::find_if(spectrum.begin(), spectrum.end(), [](double v) { return v > 1e-10; });
  };
  for (const std::vector<double>& weights : {std::vector<double>{}, std::vector<double>{0.2, 0.5, 0.3}}) {
    const Smoothness got = smoothness(p.spec, p.agreement, p.parts, weights);
    const std::vector<double> w = weights.empty() ? std::vector<double>(3, 1.0 / 3) : weights;
    const auto spectrum = jacobi_eigenvalues(naive_gram(p.parts, w));
    EXPECT_NEAR(got.L, c.curvature * spectrum.back() + ridge, 1e-12 * got.L);
    EXPECT_NEAR(got.mu, mu_of(spectrum), 1e-12);
    EXPECT_EQ(got.convex, c.regularizer != Regularizer::kNonconvex);
    EXPECT_TRUE(got.exact);
    ASSERT_EQ(got.L_i.size(), 3u);
    for (std::uint32_t i = 0; i < 3; ++i) {
      const auto own = jacobi_eigenvalues(naive_gram({p.parts[i]}, {1}));
      const ClientSmoothness client = client_smoothness(p.spec, p.agreement, p.parts[i], i);
      EXPECT_NEAR(client.L_i, c.curvature * own.back() + ridge, 1e-12 * client.L_i);
      EXPECT_NEAR(client.mu_i, mu_of(own), 1e-12);
      EXPECT_EQ(client.L_i, got.L_i[i]);
    }
  }
}

TEST_P(Constants, BoundTheQuotientsOfGradients) {
  const Case& c = GetParam();
  const Problem p = problem_of(c.kind, c.regularizer, 0.3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto oracle = make_oracle<double>(p.spec, p.agreement, p.parts[i], i);
    const ClientSmoothness constants = client_smoothness(p.spec, p.agreement, p.parts[i], i);
    double largest = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      const auto x = random_point(kColumns, 0.3, 2 * seed), y = random_point(kColumns, 0.3, 2 * seed + 1);
      const auto gx = evaluate(*oracle, x).gradient, gy = evaluate(*oracle, y).gradient;
      double difference = 0, distance = 0;
      for (std::size_t j = 0; j < kColumns; ++j) {
        difference += std::pow(gx[j] - gy[j], 2);
        distance += std::pow(x[j] - y[j], 2);
      }
      largest = std::max(largest, std::sqrt(difference / distance));
    }
    EXPECT_LE(largest, constants.L_i);
    EXPECT_GE(largest, 0.3 * constants.L_i);
    EXPECT_LE(constants.mu_i, constants.L_i);
  }
}

TEST(Smoothness, DegenerateDataHasTheConstantsOfItsFormula) {
  Problem p = problem_of("least_squares", Regularizer::kNone, 0, {1});
  p.parts[0].train = sparse_data({{3, 0, 4, 0, 0, 0, 0}}, {1}, kColumns);  // one row: rank 1
  Smoothness one_row = smoothness(p.spec, p.agreement, p.parts, {});
  EXPECT_NEAR(one_row.L, 25, 1e-12 * 25);
  EXPECT_NEAR(one_row.mu, 25, 1e-12 * 25);
  p.spec.regularizer = Regularizer::kL2;
  p.spec.lambda = 0.5;
  EXPECT_DOUBLE_EQ(smoothness(p.spec, p.agreement, p.parts, {}).mu, 0.5);

  p.spec.lambda = 0;
  p.parts[0].train = sparse_data({{}, {}}, {1, 2}, kColumns);  // all features 0
  const Smoothness zero = smoothness(p.spec, p.agreement, p.parts, {});
  EXPECT_EQ(zero.L, 0);
  EXPECT_EQ(zero.mu, 0);

  p.parts[0].train = sparse_data({}, {}, kColumns);
  EXPECT_THROW(smoothness(p.spec, p.agreement, p.parts, {}), DataError);
}

TEST(Smoothness, PlConstantOfFewRowsComesFromTheTwinMatrix) {
  // Fewer samples than features, one of them twice: rank 3 of 4 rows.
  Problem p = problem_of("least_squares", Regularizer::kNone, 0, {3, 1});
  p.parts[1].train = select_rows(p.parts[0].train, std::vector<std::uint32_t>{2});
  const auto spectrum = jacobi_eigenvalues(naive_gram(p.parts, {0.5, 0.5}));
  const double smallest = *std::find_if(spectrum.begin(), spectrum.end(), [](double v) { return v > 1e-10; });
  EXPECT_NEAR(smoothness(p.spec, p.agreement, p.parts, {}).mu, smallest, 1e-12 * smallest);
}

TEST(Smoothness, DenseRowsGiveTheSameGramMatrixAsSparseOnes) {
  // Enough full rows for the blocked product, and not a multiple of its block.
  Problem p = problem_of("least_squares", Regularizer::kNone, 0, {53});
  p.parts[0].train = random_data(53, kColumns, 1.1, {});
  const auto spectrum = jacobi_eigenvalues(naive_gram(p.parts, {1}));
  const Smoothness got = smoothness(p.spec, p.agreement, p.parts, {});
  EXPECT_NEAR(got.mu, spectrum.front(), 1e-12 * spectrum.front());
  EXPECT_NEAR(got.L, spectrum.back(), 1e-12 * spectrum.back());
}

TEST(Smoothness, MeansAndMaximaAreThoseOfTheClients) {
  Smoothness s;
  EXPECT_EQ(s.L_max() + s.L_avg() + s.L_tilde(), 0);
  s.L_i = {1, 2, 6};
  EXPECT_EQ(s.L_max(), 6);
  EXPECT_EQ(s.L_avg(), 3);
  EXPECT_DOUBLE_EQ(s.L_tilde(), std::sqrt(41.0 / 3));
}

TEST(Smoothness, AServerWithoutDataTakesMeansAndSaysSo) {
  const Problem p = problem_of("logistic", Regularizer::kL2, 0.1);
  std::vector<ClientSmoothness> clients;
  for (std::uint32_t i = 0; i < 3; ++i)
    clients.push_back(client_smoothness(p.spec, p.agreement, p.parts[i], i));
  const Smoothness estimate = smoothness_from_clients(p.spec, clients);
  const Smoothness exact = smoothness(p.spec, p.agreement, p.parts, {});
  EXPECT_FALSE(estimate.exact);
  EXPECT_EQ(estimate.L, exact.L_avg());
  EXPECT_GE(estimate.L, exact.L);
  EXPECT_DOUBLE_EQ(estimate.mu, 0.1);
  EXPECT_EQ(estimate.L_i, exact.L_i);
  EXPECT_TRUE(estimate.convex);
}

TEST(Smoothness, PlConstantsOfClientsSayNothingAboutTheirMean) {
  // f_1 = x_1^2 / 2 and f_2 = x_2^2 / 2 have the PL constant 1, their mean 1/2.
  Problem p = problem_of("least_squares", Regularizer::kNone, 0, {1, 1});
  p.parts[0].train = sparse_data({{1}}, {0}, kColumns);
  p.parts[1].train = sparse_data({{0, 1}}, {0}, kColumns);
  std::vector<ClientSmoothness> clients;
  for (std::uint32_t i = 0; i < 2; ++i)
    clients.push_back(client_smoothness(p.spec, p.agreement, p.parts[i], i));
  EXPECT_NEAR(clients[0].mu_i, 1, 1e-14);
  EXPECT_NEAR(smoothness(p.spec, p.agreement, p.parts, {}).mu, 0.5, 1e-14);
  EXPECT_EQ(smoothness_from_clients(p.spec, clients).mu, 0);
}

}  // namespace
}  // namespace gradwire
