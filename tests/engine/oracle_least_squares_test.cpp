#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "engine/problems/least_squares.h"
#include "tests/engine/oracle_checks.h"

namespace gradwire {
namespace {

class LeastSquaresTest : public ::testing::TestWithParam<Regularizer> {
 protected:
  static constexpr double kLambda = 0.3;
  ClientDataset part_{random_data(37, 6, 0.5, {}), {}};
  template <class Real>
  LeastSquaresOracle<Real> oracle() const {
    return {part_, 6, GetParam(), kLambda};
  }
};
INSTANTIATE_TEST_SUITE_P(Regularizers, LeastSquaresTest,
                         ::testing::Values(Regularizer::kNone, Regularizer::kL2, Regularizer::kNonconvex));

TEST_P(LeastSquaresTest, MatchesTheFormulaInDenseLoops) {
  auto oracle = this->oracle<double>();
  const DenseRows a = dense_rows(part_.train);
  const std::vector<double> x = random_point(6, 2);
  double loss = 0;
  std::vector<double> gradient(6);
  for (std::size_t r = 0; r < a.size(); ++r) {
    double residual = -part_.train.label[r];
    for (std::size_t j = 0; j < 6; ++j) residual += a[r][j] * x[j];
    loss += residual * residual / (2 * 37);
    for (std::size_t j = 0; j < 6; ++j) gradient[j] += residual * a[r][j] / 37;
  }
  for (std::size_t j = 0; j < 6; ++j) {
    const double square = x[j] * x[j];
    if (GetParam() == Regularizer::kL2) {
      loss += kLambda * square / 2;
      gradient[j] += kLambda * x[j];
    } else if (GetParam() == Regularizer::kNonconvex) {
      loss += kLambda * square / (1 + square);
      gradient[j] += 2 * kLambda * x[j] / ((1 + square) * (1 + square));
    }
  }
  const auto got = evaluate(oracle, x);
  EXPECT_NEAR(got.loss, loss, 1e-13 * loss);
  for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(got.gradient[j], gradient[j], 1e-13);
}

TEST_P(LeastSquaresTest, GradientMatchesFiniteDifferences) {
  auto oracle = this->oracle<double>();
  for (const double scale : {0.0, 1.0, 4.0})
    expect_matches_finite_differences(oracle, random_point(6, scale));
}

TEST_P(LeastSquaresTest, BatchesAreMeansOfSamplesAndCallsRepeatBits) {
  auto oracle = this->oracle<double>();
  expect_batches_agree(oracle, random_point(6, 1));
}

TEST_P(LeastSquaresTest, FloatAgreesWithDouble) {
  auto narrow = this->oracle<float>();
  auto wide = this->oracle<double>();
  expect_float_agrees(narrow, wide, random_point(6, 1));
  EXPECT_FALSE(wide.score(random_point(6, 1)).has_value());
}

}  // namespace
}  // namespace gradwire
