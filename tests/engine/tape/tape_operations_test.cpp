// Every operation on every kind of tape against plain formulas and their central differences.
#include "tests/engine/tape/tape_operations.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <span>
#include <vector>

#include "engine/tape/fixed_tape.h"
#include "engine/tape/lanes.h"
#include "engine/tape/tape.h"
#include "tests/support/sanitized.h"

namespace gradwire::tape_tests {
namespace {

template <class T>
struct LaneAccess {
  using Real = T;
  static constexpr std::size_t kLanes = 1;
  static double get(const T& x, std::size_t) { return static_cast<double>(x); }
  static void set(T& x, std::size_t, double value) { x = static_cast<T>(value); }
};
template <class R, std::size_t N>
struct LaneAccess<Lanes<R, N>> {
  using Real = R;
  static constexpr std::size_t kLanes = N;
  static double get(const Lanes<R, N>& x, std::size_t i) { return static_cast<double>(x[i]); }
  static void set(Lanes<R, N>& x, std::size_t i, double value) { x[i] = static_cast<R>(value); }
};

template <class Tape>
class TapeOperations : public testing::Test {};

#if GRADWIRE_SANITIZED
// One of each kind: the others are the same templates, and each costs an instrumented build half a minute.
using Tapes = testing::Types<Tape<double>, FixedTape<Lanes<float, 8>, 16>>;
#else
using Tapes = testing::Types<Tape<double>, Tape<float>, Tape<Lanes<double, 8>>, Tape<Lanes<float, 16>>,
                             FixedTape<double, 16>, FixedTape<float, 16>, FixedTape<Lanes<double, 8>, 16>>;
#endif
TYPED_TEST_SUITE(TapeOperations, Tapes);

std::vector<std::array<double, 3>> points(Where where) {
  const std::vector<double> all = {-2.25, -0.40625, 0.001953125, 0.3125, 1.6875, 4.125};
  std::vector<std::array<double, 3>> result;
  for (const double a : all) {
    for (const double b : {-1.9375, 0.625, 3.1875}) {
      for (const double c : {-0.71875, 2.375}) {
        if (where == Where::kAll || a > 0.01) result.push_back({a, b, c});
      }
    }
  }
  return result;
}

TYPED_TEST(TapeOperations, MatchTheirFormulasAndCentralDifferences) {
  using T = typename TypeParam::Value;
  using Access = LaneAccess<T>;
  const double precision = sizeof(typename Access::Real) == 8 ? 2e-7 : 2e-4;
  for (const auto& op : operations<Var<TypeParam>>()) {
    const auto all = points(op.where);
    for (std::size_t first = 0; first < all.size(); first += Access::kLanes) {
      std::array<T, 3> x{T(0), T(0), T(0)};
      for (std::size_t k = 0; k < 3; ++k) {
        for (std::size_t i = 0; i < Access::kLanes; ++i) {
          Access::set(x[k], i, all[std::min(first + i, all.size() - 1)][k]);
        }
      }
      TypeParam tape;
      const std::array v{tape.variable(x[0]), tape.variable(x[1]), tape.variable(x[2])};
      const auto f = op.on_tape(v);
      backward(f);
      for (std::size_t i = 0; i < Access::kLanes && first + i < all.size(); ++i) {
        auto p = all[first + i];
        const double value = op.plain(p[0], p[1], p[2]);
        const double round = precision < 1e-5 ? 1e-13 : 1e-5;
        EXPECT_NEAR(Access::get(f.value(), i), value, round * (1 + std::abs(value))) << op.name;
        for (std::size_t k = 0; k < 3; ++k) {
          const double center = p[k], h = 1e-6 * std::min(1.0, std::abs(center) * 10);
          p[k] = center + h;
          const double above = op.plain(p[0], p[1], p[2]);
          p[k] = center - h;
          const double below = op.plain(p[0], p[1], p[2]);
          p[k] = center;
          const double slope = (above - below) / (2 * h);
          EXPECT_NEAR(Access::get(v[k].grad(), i), slope, precision * (1 + std::abs(slope) + std::abs(value)))
              << op.name << " by argument " << k << " at " << p[0] << ", " << p[1] << ", " << p[2];
        }
      }
    }
  }
}

// Value and derivative of f at x, the same in every lane.
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

TYPED_TEST(TapeOperations, KinksHaveTheDocumentedSlopes) {
  using Tape = TypeParam;
  EXPECT_EQ(at<Tape>(0, [](auto a) { return relu(a); }), Pair(0, 0));
  EXPECT_EQ(at<Tape>(0, [](auto a) { return abs(a); }), Pair(0, 0));
  EXPECT_EQ(at<Tape>(-2, [](auto a) { return abs(a); }), Pair(2, -1));
  // Ties: the first argument takes it, whether Var or number.
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

TYPED_TEST(TapeOperations, InfiniteSlopesAreInfinite) {
  using Tape = TypeParam;
  EXPECT_EQ(at<Tape>(0, [](auto a) { return sqrt(a); }), Pair(0, kInf));
  EXPECT_EQ(at<Tape>(0, [](auto a) { return log(a); }), Pair(-kInf, kInf));
  EXPECT_EQ(at<Tape>(0, [](auto a) { return inv(a); }), Pair(kInf, -kInf));
}

TYPED_TEST(TapeOperations, HugeArgumentsDoNotOverflowOnTheWay) {
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

TYPED_TEST(TapeOperations, AProductWithZerosHasTheRightSlopes) {
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
