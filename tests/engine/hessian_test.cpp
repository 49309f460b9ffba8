#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/upper_triangle.h"
#include "tests/engine/oracle_checks.h"
#include "tests/engine/problem_types.h"
#include "tests/support/count_allocations.h"

namespace gradwire {
namespace {

constexpr std::size_t kColumns = 6;
constexpr std::size_t kRows = 141;  // more than a block of the oracle, and not a multiple of it

struct HessianCase {
  const char* kind;
  LinearLoss loss = LinearLoss::kLogistic;
  Regularizer regularizer = Regularizer::kNone;
  bool bias = false;
  double share = 0.4;  // share of nonzeros; 2 for rows without gaps
};
void PrintTo(const HessianCase& c, std::ostream* out) {
  *out << c.kind << " loss " << static_cast<int>(c.loss) << " regularizer " << static_cast<int>(c.regularizer)
       << (c.bias ? " bias" : "") << " share " << c.share;
}

class Hessian : public ::testing::TestWithParam<HessianCase> {
 protected:
  Hessian() {
    const HessianCase& c = GetParam();
    spec_ = spec_of_type(c.kind);
    part_.train = random_data(kRows, kColumns, c.share, {0, 1});
    if (auto* quadratic = std::get_if<Quadratic>(&spec_.problem)) {
      quadratic->shape = {.dim = kColumns, .lambda = 0.3, .heterogeneity = 0.5};
      spec_.clients = 3;
      return;
    }
    linear_model(spec_).regularizer = c.regularizer;
    linear_model(spec_).bias = c.bias;
    linear_model(spec_).lambda = 0.3;
    if (auto* logistic = std::get_if<Logistic>(&spec_.problem)) logistic->loss = c.loss;
  }
  template <class Real>
  std::unique_ptr<Oracle<Real>> oracle() const {
    return make_oracle<Real>(spec_, {.columns = kColumns, .labels = {0, 1}}, part_, 0);
  }

  ProblemSpec spec_;
  ClientDataset part_;
};

class HessianOfRows : public Hessian {};

constexpr auto kSquaredLoss = LinearLoss::kSigmoidSquared;
INSTANTIATE_TEST_SUITE_P(Quadratic, Hessian, ::testing::Values(HessianCase{"quadratic"}));
const auto kLinear = ::testing::Values(
    HessianCase{"least_squares"}, HessianCase{"least_squares", {}, Regularizer::kL2, true, 2},
    HessianCase{"least_squares", {}, Regularizer::kNonconvex}, HessianCase{"logistic"},
    HessianCase{"logistic", {}, Regularizer::kL2, true}, HessianCase{"logistic", {}, Regularizer::kNonconvex},
    HessianCase{"logistic", {}, Regularizer::kL2, false, 2}, HessianCase{"logistic", kSquaredLoss},
    HessianCase{"logistic", kSquaredLoss, Regularizer::kL2},
    HessianCase{"logistic", kSquaredLoss, Regularizer::kNonconvex, true, 2},
    // These have few pairs of nonzeros, which are added one by one. All others are added in dense blocks.
    HessianCase{"logistic", LinearLoss::kLogistic, Regularizer::kNone, false, 0.05},
    HessianCase{"least_squares", LinearLoss::kLogistic, Regularizer::kL2, false, 0.05});
INSTANTIATE_TEST_SUITE_P(Linear, Hessian, kLinear);
INSTANTIATE_TEST_SUITE_P(Linear, HessianOfRows, kLinear);

template <class Real>
std::vector<Real> hessian_of(Oracle<Real>& oracle, const std::vector<double>& x) {
  const std::vector<Real> point(x.begin(), x.end());
  std::vector<Real> upper(upper_size(x.size()), Real(77));  // the oracle overwrites and never adds
  EXPECT_TRUE(oracle.hessian(point, upper));
  return upper;
}

TEST_P(Hessian, EqualsTheCentralDifferencesOfGradients) {
  const auto oracle = this->oracle<double>();
  const std::size_t d = oracle->dim();
  for (const double scale : {0.0, 1.0, 4.0}) {
    std::vector<double> x = random_point(d, scale);
    const std::vector<double> upper = hessian_of(*oracle, x);
    for (std::size_t b = 0; b < d; ++b) {
      const double center = x[b], step = 1e-5;
      x[b] = center + step;
      const auto above = evaluate(*oracle, x).gradient;
      x[b] = center - step;
      const auto below = evaluate(*oracle, x).gradient;
      x[b] = center;
      for (std::size_t a = 0; a <= b; ++a)
        EXPECT_NEAR(upper[upper_row(a, d) + b], (above[a] - below[a]) / (2 * step), 1e-8) << a << ", " << b;
    }
  }
}

TEST_P(HessianOfRows, EqualsTheSumOverDenseRows) {
  const auto oracle = this->oracle<double>();
  const std::size_t d = oracle->dim();
  const std::vector<double> x = random_point(d, 1);
  std::vector<double> want(d * d);
  DenseRows rows = dense_rows(part_.train);
  for (std::size_t r = 0; r < kRows; ++r) {
    if (GetParam().bias) rows[r].push_back(1);
    double z = 0;
    for (std::size_t j = 0; j < d; ++j) z += rows[r][j] * x[j];
    if (part_.train.label[r] == 0) z = -z;
    const double s = 1 / (1 + std::exp(z));
    const double curvature = spec_.info().name == "least_squares" ? 1
                             : GetParam().loss == kSquaredLoss    ? 2 * s * s * (1 - s) * (2 - 3 * s)
                                                                  : s * (1 - s);
    for (std::size_t a = 0; a < d; ++a)
      for (std::size_t b = 0; b < d; ++b) want[a * d + b] += curvature * rows[r][a] * rows[r][b] / kRows;
  }
  for (std::size_t j = 0; j < d; ++j) {
    const double square = x[j] * x[j];
    if (GetParam().regularizer == Regularizer::kL2) want[j * d + j] += 0.3;
    if (GetParam().regularizer == Regularizer::kNonconvex)
      want[j * d + j] += 0.6 * (1 - 3 * square) / std::pow(1 + square, 3);
  }
  const std::vector<double> upper = hessian_of(*oracle, x);
  for (std::size_t a = 0; a < d; ++a)
    for (std::size_t b = a; b < d; ++b)
      EXPECT_NEAR(upper[upper_row(a, d) + b], want[a * d + b], 1e-14) << a << ", " << b;
}

TEST_P(Hessian, RepeatsItsBitsAndFloatAgrees) {
  const auto oracle = this->oracle<double>();
  const auto narrow = this->oracle<float>();
  const std::vector<double> x = random_point(oracle->dim(), 1), y = random_point(oracle->dim(), 1, 7);
  const auto first = hessian_of(*oracle, x);
  hessian_of(*oracle, y);
  EXPECT_EQ(hessian_of(*oracle, x), first);
  const auto rounded = hessian_of(*narrow, x);
  for (std::size_t k = 0; k < first.size(); ++k) EXPECT_NEAR(rounded[k], first[k], 2e-6) << k;
}

TEST_P(HessianOfRows, AgreesWithThatOfPortableKernels) {
  const auto best = this->oracle<double>();
  spec_.kernels = KernelSet::kPortable;
  const auto portable = this->oracle<double>();
  const std::vector<double> x = random_point(best->dim(), 1);
  const auto want = hessian_of(*best, x), got = hessian_of(*portable, x);
  for (std::size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(got[k], want[k], 1e-14) << k;
}

TEST_P(HessianOfRows, AllocatesNothingAfterTheFirst) {
  const auto oracle = this->oracle<double>();
  const std::vector<double> x = random_point(oracle->dim(), 1);
  std::vector<double> upper = hessian_of(*oracle, x);
  const std::size_t before = allocations::count;
  oracle->hessian(x, upper);
  EXPECT_EQ(allocations::count, before);
}

TEST_P(Hessian, ThrowsLogicErrorsForWrongLengths) {
  const auto oracle = this->oracle<double>();
  const std::size_t d = oracle->dim();
  std::vector<double> x(d), wrong(d + 1), upper(upper_size(d)), full(d * d);
  EXPECT_THROW(oracle->hessian(wrong, upper), std::logic_error);
  EXPECT_THROW(oracle->hessian(x, full), std::logic_error);
}

TEST(HessianOfANetwork, IsNotOffered) {
  ProblemSpec spec;
  spec.problem = Mlp{};
  const ClientDataset part{random_data(5, 3, 1, {0, 1}), {}};
  const auto oracle = make_oracle<double>(spec, {.columns = 3, .labels = {0, 1}}, part, 0);
  std::vector<double> x(oracle->dim()), upper(upper_size(oracle->dim()), 5.0);
  EXPECT_FALSE(oracle->hessian(x, upper));
  EXPECT_EQ(upper, std::vector<double>(upper.size(), 5.0));
}

TEST(UpperTriangle, RowsFollowEachOtherWithoutGaps) {
  for (const std::size_t d : {1u, 2u, 7u}) {
    std::size_t next = 0;
    for (std::size_t a = 0; a < d; ++a)
      for (std::size_t b = a; b < d; ++b) EXPECT_EQ(upper_row(a, d) + b, next++);
    EXPECT_EQ(next, upper_size(d));
  }
}

}  // namespace
}  // namespace gradwire
