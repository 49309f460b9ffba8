// Every operation on every kind of tape, compared with plain formulas and their central differences.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <span>
#include <vector>

#include "engine/tape/eager_tape.h"
#include "engine/tape/fixed_tape.h"
#include "engine/tape/lanes.h"
#include "tests/engine/tape/match_formulas.h"
#include "tests/support/sanitized.h"

namespace gradwire::tape_tests {
namespace {

template <class Tape>
class TapeOperations : public ::testing::Test {};

#if GRADWIRE_SANITIZED
// One tape of each kind. The others are the same templates, and each costs an instrumented build half a
// minute.
using Tapes = ::testing::Types<EagerTape<double>, FixedTape<Lanes<float, 8>, 16>>;
#else
using Tapes = ::testing::Types<EagerTape<double>, EagerTape<float>, EagerTape<Lanes<double, 8>>,
                               EagerTape<Lanes<float, 16>>, FixedTape<double, 16>, FixedTape<float, 16>,
                               FixedTape<Lanes<double, 8>, 16>>;
#endif
TYPED_TEST_SUITE(TapeOperations, Tapes);

TYPED_TEST(TapeOperations, MatchFormulasAndCentralDifferences) {
  using Real = typename LaneAccess<typename TypeParam::Value>::Real;
  const bool fp64 = sizeof(Real) == 8;
  expect_formulas<TypeParam>({.value = fp64 ? 1e-13 : 1e-5, .slope = fp64 ? 2e-7 : 2e-4});
}

// Returns value and derivative of f at x, the same in every lane.
template <class Tape, class F>
std::pair<double, double> at(double x, F f) {
  using T = typename Tape::Value;
  using Access = LaneAccess<T>;
  Tape tape;
  const auto a = tape.variable(T(static_cast<typename Access::Real>(x)));
  const auto y = f(a);
  backward(y);
  for (std::size_t i = 1; i < Access::kLanes; ++i) {
    const auto same = [](double p, double q) { return p == q || (std::isnan(p) && std::isnan(q)); };
    EXPECT_TRUE(same(Access::get(y.value(), i), Access::get(y.value(), 0)));
    EXPECT_TRUE(same(Access::get(a.grad(), i), Access::get(a.grad(), 0)));
  }
  return {Access::get(y.value(), 0), Access::get(a.grad(), 0)};
}

using Pair = std::pair<double, double>;
constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

TYPED_TEST(TapeOperations, KinksHaveDocumentedDerivatives) {
  using Tape = TypeParam;
  EXPECT_EQ(at<Tape>(0, [](auto a) { return relu(a); }), Pair(0, 0));
  EXPECT_EQ(at<Tape>(0, [](auto a) { return abs(a); }), Pair(0, 0));
  EXPECT_EQ(at<Tape>(-2, [](auto a) { return abs(a); }), Pair(2, -1));
  // At ties the first argument takes the gradient, also if it is a number.
  EXPECT_EQ(at<Tape>(1, [](auto a) { return max(a, 1); }), Pair(1, 1));
  EXPECT_EQ(at<Tape>(1, [](auto a) { return max(1, a); }), Pair(1, 0));
  EXPECT_EQ(at<Tape>(1, [](auto a) { return min(a, 1); }), Pair(1, 1));
  EXPECT_EQ(at<Tape>(1, [](auto a) { return min(1, a); }), Pair(1, 0));
  EXPECT_EQ(at<Tape>(1, [](auto a) { return max(a, 3 * a - 2); }), Pair(1, 1));
  EXPECT_EQ(at<Tape>(1, [](auto a) { return min(a, 3 * a - 2); }), Pair(1, 1));
  EXPECT_EQ(at<Tape>(0, [](auto a) { return pow(a, 0); }), Pair(1, 0));
  EXPECT_EQ(at<Tape>(0, [](auto a) { return pow(a, 2); }), Pair(0, 0));
  EXPECT_EQ(at<Tape>(0, [](auto a) { return pow(a, 1); }), Pair(0, 1));
}

TYPED_TEST(TapeOperations, InfiniteDerivativesAreInfinite) {
  using Tape = TypeParam;
  EXPECT_EQ(at<Tape>(0, [](auto a) { return sqrt(a); }), Pair(0, kInf));
  EXPECT_EQ(at<Tape>(0, [](auto a) { return log(a); }), Pair(-kInf, kInf));
  EXPECT_EQ(at<Tape>(0, [](auto a) { return inv(a); }), Pair(kInf, -kInf));
}

TYPED_TEST(TapeOperations, HugeArgumentsDoNotOverflow) {
  using Tape = TypeParam;
  for (const double x : {800.0, 1e30}) {
    EXPECT_EQ(at<Tape>(x, [](auto a) { return tanh(a); }), Pair(1, 0));
    EXPECT_EQ(at<Tape>(-x, [](auto a) { return tanh(a); }), Pair(-1, 0));
    EXPECT_EQ(at<Tape>(x, [](auto a) { return sigmoid(a); }), Pair(1, 0));
    EXPECT_EQ(at<Tape>(-x, [](auto a) { return sigmoid(a); }), Pair(0, 0));
    EXPECT_EQ(at<Tape>(x, [](auto a) { return exp(a); }), Pair(kInf, kInf));
    EXPECT_EQ(at<Tape>(-x, [](auto a) { return exp(a); }), Pair(0, 0));
    EXPECT_EQ(at<Tape>(x, [](auto a) { return softmax(a, -a)[0]; }).first, 1);
    EXPECT_EQ(at<Tape>(x, [](auto a) { return softmax(a, -a)[1]; }), Pair(0, 0));
  }
  EXPECT_EQ(at<Tape>(1000, [](auto a) { return log_sum_exp(a, -a); }), Pair(1000, 1));
  EXPECT_EQ(at<Tape>(-1000, [](auto a) { return log_sum_exp(a, a - 900); }), Pair(-1000, 1));
}

TYPED_TEST(TapeOperations, TinyArgumentsKeepTheirDigits) {
  using Tape = TypeParam;
  const double tiny = 0x1p-30;
  EXPECT_NEAR(at<Tape>(tiny, [](auto a) { return tanh(a); }).first / tiny, 1, 1e-6);
  EXPECT_NEAR(at<Tape>(tiny, [](auto a) { return sin(a); }).first / tiny, 1, 1e-6);
  EXPECT_NEAR(at<Tape>(tiny, [](auto a) { return sqrt(a); }).second, 0x1p14, 1);
  EXPECT_NEAR(at<Tape>(-80, [](auto a) { return exp(a); }).first / std::exp(-80.0), 1, 1e-5);
}

TYPED_TEST(TapeOperations, NanStaysNan) {
  using Tape = TypeParam;
  EXPECT_TRUE(std::isnan(at<Tape>(kNan, [](auto a) { return relu(a); }).first));
  EXPECT_TRUE(std::isnan(at<Tape>(kNan, [](auto a) { return abs(a); }).first));
  EXPECT_TRUE(std::isnan(at<Tape>(kNan, [](auto a) { return max(a, 1); }).first));
  EXPECT_TRUE(std::isnan(at<Tape>(kNan, [](auto a) { return max(1, a); }).first));
  EXPECT_TRUE(std::isnan(at<Tape>(kNan, [](auto a) { return min(a, 1); }).first));
  EXPECT_TRUE(std::isnan(at<Tape>(kNan, [](auto a) { return min(1, a); }).first));
  EXPECT_TRUE(std::isnan(at<Tape>(kNan, [](auto a) { return min(a + 1, a); }).first));
  EXPECT_TRUE(std::isnan(at<Tape>(kNan, [](auto a) { return tanh(a); }).first));
  EXPECT_TRUE(std::isnan(at<Tape>(kNan, [](auto a) { return exp(a); }).first));
  EXPECT_TRUE(std::isnan(at<Tape>(kNan, [](auto a) { return sigmoid(a); }).first));
  EXPECT_TRUE(std::isnan(at<Tape>(kNan, [](auto a) { return log_sum_exp(a, 0 * a, a); }).first));
}

TYPED_TEST(TapeOperations, ProductWithZerosHasRightDerivatives) {
  using T = typename TypeParam::Value;
  using Access = LaneAccess<T>;
  TypeParam tape;
  const auto a = tape.variable(0), b = tape.variable(3), c = tape.variable(5), z = tape.variable(0);
  backward(reduce_mul(b, a, c));
  EXPECT_EQ(Access::get(a.grad(), 0), 15);
  EXPECT_EQ(Access::get(b.grad(), 0), 0);
  backward(reduce_mul(a, b, z));
  EXPECT_EQ(Access::get(a.grad(), 0), 0);
  EXPECT_EQ(Access::get(b.grad(), 0), 0);
}

}  // namespace
}  // namespace gradwire::tape_tests
