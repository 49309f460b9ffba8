// The optional operations of the oracles with closed forms.
#include <gtest/gtest.h>
#include <vector>

#include "engine/problems/least_squares.h"
#include "engine/problems/logistic.h"
#include "engine/problems/quadratic.h"
#include "tests/engine/capability_checks.h"
#include "tests/engine/oracle_checks.h"

namespace gradwire {
namespace {

constexpr std::size_t kFeatures = 230;  // so many that dense rows are read only in part
constexpr std::size_t kSamples = 150;   // more than a block of rows

template <class Real, class Made>
void expect_linear_capabilities(Made&& made, double tolerance) {
  for (const Regularizer regularizer : {Regularizer::kNone, Regularizer::kL2, Regularizer::kNonconvex})
    for (const double share : {0.05, 0.7, 1.0}) {
      SCOPED_TRACE(share);
      const ClientDataset part{random_data(kSamples, kFeatures, share, {-1, 1}), {}};
      auto oracle = made(part, regularizer);
      const std::vector<double> start = random_point(kFeatures, 0.2);
      const std::vector<Real> x(start.begin(), start.end());
      const std::vector<std::uint32_t> some = {149, 3, 3, 77}, one = {12};
      expect_capabilities<Real>(oracle, x, {}, tolerance);
      expect_capabilities<Real>(oracle, x, some, tolerance);
      expect_capabilities<Real>(oracle, x, one, tolerance);
    }
}

template <class Real>
void expect_all_linear_capabilities(double tolerance) {
  expect_linear_capabilities<Real>(
      [](const ClientDataset& part, Regularizer regularizer) {
        return LeastSquaresOracle<Real>(part, kFeatures, regularizer, 0.3);
      },
      tolerance);
  for (const LinearLoss loss : {LinearLoss::kLogistic, LinearLoss::kSigmoidSquared})
    expect_linear_capabilities<Real>(
        [loss](const ClientDataset& part, Regularizer regularizer) {
          const std::vector<double> labels = {-1, 1};
          return LogisticOracle<Real>(part, kFeatures, labels, regularizer, 0.3, loss);
        },
        tolerance);
}

TEST(LinearCapabilities, AgreeWithThePlainGradientInDouble) { expect_all_linear_capabilities<double>(1e-11); }
TEST(LinearCapabilities, AgreeWithThePlainGradientInSingle) { expect_all_linear_capabilities<float>(1e-3); }

TEST(LinearCapabilities, AgreeWithThePlainGradientForQuadratics) {
  for (const std::size_t dim : {1u, 2u, 9u, 40u})
    for (const double noise : {0.0, 0.5}) {
      const QuadraticFamily family({.dim = dim, .lambda = 0.1, .heterogeneity = 0.5, .noise = noise}, 3, 1);
      QuadraticOracle<double> wide(family, 2);
      QuadraticOracle<float> narrow(family, 1);
      const std::vector<double> start = random_point(dim, 1);
      const std::vector<std::uint32_t> batch = {0, 0};
      expect_capabilities<double>(wide, start, batch, 1e-12);
      expect_capabilities<float>(narrow, std::vector<float>(start.begin(), start.end()), batch, 1e-5);
      if (noise == 0) expect_capabilities<double>(wide, start, {}, 1e-12);
    }
}

TEST(LinearCapabilities, CostLessForARangeOfLongRows) {
  const ClientDataset dense{random_data(20, kFeatures, 1, {}), {}},
      sparse{random_data(20, kFeatures, 0.05, {}), {}};
  const LeastSquaresOracle<double> a(dense, kFeatures, Regularizer::kNone, 0),
      b(sparse, kFeatures, Regularizer::kNone, 0);
  EXPECT_LT(a.cost(Coordinates::range(0, 20)), 0.8);
  EXPECT_EQ(a.cost(Coordinates::range(0, kFeatures)), 1);
  EXPECT_EQ(b.cost(Coordinates::range(0, 20)), 1);
}

}  // namespace
}  // namespace gradwire
