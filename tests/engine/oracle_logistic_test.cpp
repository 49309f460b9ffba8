#include <cmath>
#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

#include "engine/problems/logistic.h"
#include "tests/engine/oracle_checks.h"

namespace gradwire {
namespace {

const std::vector<double> kLabels = {3, 7};  // become -1 and +1

struct Case {
  Regularizer regularizer;
  double lambda;
  LinearLoss loss = LinearLoss::kLogistic;
};
constexpr auto kSquared = LinearLoss::kSigmoidSquared;
class LogisticLoss : public ::testing::TestWithParam<Case> {
 protected:
  // The data has more rows than one block of the oracle, and not a multiple of it.
  ClientDataset part_{random_data(301, 9, 0.4, kLabels), random_data(40, 9, 0.4, {3, 7, 11}, 5)};
  template <class Real>
  LogisticOracle<Real> oracle() const {
    return {part_, 9, kLabels, GetParam().regularizer, GetParam().lambda, GetParam().loss};
  }
};
INSTANTIATE_TEST_SUITE_P(Regularizers, LogisticLoss,
                         ::testing::Values(Case{Regularizer::kNone, 0.7}, Case{Regularizer::kL2, 0.3},
                                           Case{Regularizer::kNonconvex, 0.2}, Case{Regularizer::kL2, 0},
                                           Case{Regularizer::kNone, 0, kSquared},
                                           Case{Regularizer::kL2, 0.3, kSquared}));

double naive_regularizer(const Case& c, const std::vector<double>& x, std::vector<double>& gradient) {
  double sum = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (c.regularizer == Regularizer::kL2) {
      sum += c.lambda / 2 * x[j] * x[j];
      gradient[j] += c.lambda * x[j];
    } else if (c.regularizer == Regularizer::kNonconvex) {
      sum += c.lambda * x[j] * x[j] / (1 + x[j] * x[j]);
      gradient[j] += 2 * c.lambda * x[j] / std::pow(1 + x[j] * x[j], 2);
    }
  }
  return sum;
}

TEST_P(LogisticLoss, MatchesTheFormulaInDenseLoops) {
  auto oracle = this->oracle<double>();
  const DenseRows a = dense_rows(part_.train);
  for (const double scale : {0.0, 0.1, 1.0, 10.0}) {
    const std::vector<double> x = random_point(9, scale);
    double loss = 0;
    std::vector<double> gradient(9);
    for (std::size_t r = 0; r < a.size(); ++r) {
      const double b = part_.train.label[r] == 7 ? 1 : -1;
      double z = 0;
      for (std::size_t j = 0; j < 9; ++j) z += a[r][j] * x[j];
      const double s = 1 / (1 + std::exp(b * z));
      const bool squared = GetParam().loss == kSquared;
      loss += (squared ? s * s : std::log(1 + std::exp(-b * z))) / static_cast<double>(a.size());
      const double slope = squared ? 2 * s * s / (1 + std::exp(-b * z)) : s;
      for (std::size_t j = 0; j < 9; ++j) gradient[j] -= b * a[r][j] * slope / static_cast<double>(a.size());
    }
    loss += naive_regularizer(GetParam(), x, gradient);
    const auto got = evaluate(oracle, x);
    EXPECT_NEAR(got.loss, loss, 1e-13 * loss);
    for (std::size_t j = 0; j < 9; ++j) EXPECT_NEAR(got.gradient[j], gradient[j], 1e-14 * (1 + scale));
  }
}

TEST_P(LogisticLoss, GradientMatchesFiniteDifferences) {
  auto oracle = this->oracle<double>();
  for (const double scale : {0.0, 0.5, 3.0})
    expect_matches_finite_differences(oracle, random_point(9, scale));
}

TEST_P(LogisticLoss, BatchesAreMeansOfSamplesAndCallsRepeatBits) {
  auto oracle = this->oracle<double>();
  expect_batches_agree(oracle, random_point(9, 1));
}

TEST_P(LogisticLoss, FloatAgreesWithDouble) {
  auto narrow = this->oracle<float>();
  auto wide = this->oracle<double>();
  expect_float_agrees(narrow, wide, random_point(9, 1));
}

TEST_P(LogisticLoss, ScoresTheTestSamplesAndNeverPredictsAnUnknownLabel) {
  auto oracle = this->oracle<double>();
  const std::vector<double> x = random_point(9, 1);
  const DenseRows a = dense_rows(part_.test);
  Score want;
  for (std::size_t r = 0; r < a.size(); ++r) {
    double z = 0;
    for (std::size_t j = 0; j < 9; ++j) z += a[r][j] * x[j];
    want.correct += part_.test.label[r] == (z > 0 ? 7 : 3);
    ++want.tested;
  }
  const auto got = oracle.score(x);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->correct, want.correct);
  EXPECT_EQ(got->tested, 40u);
  EXPECT_GT(want.correct, 0u);
  std::size_t empty = 0;  // their margin is 0 at every point
  for (std::size_t r = 0; r < a.size(); ++r)
    empty += part_.test.row_columns(r).empty() && part_.test.label[r] == 3;
  EXPECT_EQ(oracle.score(std::vector<double>(9, std::nan("")))->correct, empty);
}

template <class Real>
Evaluated<Real> one_sample(double margin, LinearLoss loss = LinearLoss::kLogistic) {
  ClientDataset part{sparse_data({{1.0}}, {1}, 1), {}};
  LogisticOracle<Real> oracle(part, 1, std::vector<double>{0, 1}, Regularizer::kNone, 0, loss);
  return evaluate(oracle, {margin});
}

TEST(LogisticLoss, IsStableForLargeMargins) {
  EXPECT_DOUBLE_EQ(one_sample<double>(-800).loss, 800);
  EXPECT_DOUBLE_EQ(one_sample<double>(-800).gradient[0], -1);
  EXPECT_EQ(one_sample<double>(800).loss, 0);
  EXPECT_EQ(one_sample<double>(800).gradient[0], 0);
  EXPECT_NEAR(one_sample<double>(40).loss, std::exp(-40.0), 1e-15 * std::exp(-40.0));
  EXPECT_NEAR(one_sample<double>(40).gradient[0], -std::exp(-40.0), 1e-15 * std::exp(-40.0));
  EXPECT_FLOAT_EQ(one_sample<float>(-3e30).loss, 3e30f);
  EXPECT_EQ(one_sample<float>(3e30).gradient[0], 0);
  EXPECT_DOUBLE_EQ(one_sample<double>(0).loss, std::log(2.0));
}

TEST(SigmoidSquaredLoss, IsStableForLargeMargins) {
  EXPECT_EQ(one_sample<double>(-800, kSquared).loss, 1);
  EXPECT_EQ(one_sample<double>(-800, kSquared).gradient[0], 0);
  EXPECT_EQ(one_sample<double>(800, kSquared).loss, 0);
  EXPECT_EQ(one_sample<double>(800, kSquared).gradient[0], 0);
  EXPECT_NEAR(one_sample<double>(40, kSquared).loss, std::exp(-80.0), 1e-15 * std::exp(-80.0));
  EXPECT_NEAR(one_sample<double>(-40, kSquared).gradient[0], -2 * std::exp(-40.0), 1e-15 * std::exp(-40.0));
  EXPECT_FLOAT_EQ(one_sample<float>(-3e30, kSquared).loss, 1);
  EXPECT_DOUBLE_EQ(one_sample<double>(0, kSquared).loss, 0.25);
  EXPECT_DOUBLE_EQ(one_sample<double>(0, kSquared).gradient[0], -0.25);
  EXPECT_TRUE(std::isnan(one_sample<double>(std::nan(""), kSquared).loss));
  EXPECT_TRUE(std::isnan(one_sample<double>(std::nan(""), kSquared).gradient[0]));
}

TEST(LogisticLoss, DoesNotHideNan) {
  EXPECT_TRUE(std::isnan(one_sample<double>(std::nan("")).loss));
  EXPECT_TRUE(std::isnan(one_sample<double>(std::nan("")).gradient[0]));
}

TEST(LogisticLoss, IsSummedInDoubleEvenForFloat) {
  // Half a million equal losses; a float sum would be wrong in the third digit.
  const std::size_t rows = 500'000;
  Dataset data;
  data.columns = 1;
  data.row_start.assign(rows + 1, 0);
  data.label.assign(rows, 1);
  LogisticOracle<float> oracle(ClientDataset{data, {}}, 1, std::vector<double>{0, 1}, Regularizer::kNone, 0);
  EXPECT_FLOAT_EQ(evaluate(oracle, {0.0}).loss, std::log(2.0f));
}

TEST(LogisticErrors, NameTheLabelOrTheFeature) {
  const ClientDataset part{random_data(5, 3, 1, {1, 2, 3}), {}};
  EXPECT_THROW(LogisticOracle<double>(part, 3, kLabels, Regularizer::kNone, 0), DataError);
  const ClientDataset wide{random_data(5, 4, 1, kLabels), {}};
  EXPECT_THROW(LogisticOracle<double>(wide, 3, kLabels, Regularizer::kNone, 0), DataError);
}

TEST(LogisticErrors, ReportWrongLengthsAndBatchesAsLogicErrors) {
  const ClientDataset part{random_data(5, 3, 1, kLabels), {}};
  LogisticOracle<double> oracle(part, 3, kLabels, Regularizer::kNone, 0);
  std::vector<double> x(3), g(3), wrong(2);
  EXPECT_THROW(oracle.loss_and_gradient(wrong, {}, g), std::logic_error);
  EXPECT_THROW(oracle.loss_and_gradient(x, {}, wrong), std::logic_error);
  EXPECT_THROW(oracle.loss_and_gradient(x, std::vector<std::uint32_t>{5}, g), std::logic_error);
  EXPECT_FALSE(oracle.score(x).has_value());
}

}  // namespace
}  // namespace gradwire
