// Elementary functions, and the choice of the kernels.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned.h"
#include "engine/kernels/select.h"
#include "gradwire/network.h"

namespace gradwire {
namespace {

template <class Real>
class KernelMath : public ::testing::Test {
 protected:
  static constexpr Real kEpsilon = std::numeric_limits<Real>::epsilon();

  // Returns the largest error against `exact` of one kernel set. The unit is the last place of the result or
  // `floor`, whichever is larger.
  template <class Exact>
  static double worst(const Kernels<Real>& kernels, Activation function, double low, double high,
                      double floor, Exact exact) {
    constexpr Index kCount = 4096;
    AlignedVector<Real> x(kCount), y(kCount);
    for (Index i = 0; i < kCount; ++i)
      x[i] = static_cast<Real>(low + (high - low) * static_cast<double>(i) / static_cast<double>(kCount - 1));
    kernels.activation_forward[static_cast<int>(function)](kCount, x.data(), y.data());
    double most = 0;
    for (Index i = 0; i < kCount; ++i) {
      const long double right = exact(static_cast<long double>(x[i]));
      const long double unit = std::max<long double>(std::abs(right), floor) * kEpsilon;
      most = std::max(most, static_cast<double>(std::abs(y[i] - right) / unit));
    }
    return most;
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(KernelMath, Reals);

long double sigmoid_of(long double x) { return 1 / (1 + std::exp(-x)); }

TYPED_TEST(KernelMath, TanhAndSigmoidErrorsAreAFewUlp) {
  constexpr double kTiny = std::numeric_limits<TypeParam>::min();
  for (const Kernels<TypeParam>* kernels : available_kernels<TypeParam>()) {
    SCOPED_TRACE(kernels->name);
    const auto tanh_of = [](long double x) { return std::tanh(x); };
    EXPECT_LE(this->worst(*kernels, Activation::kTanh, -1e-3, 1e-3, kTiny, tanh_of), 3);
    EXPECT_LE(this->worst(*kernels, Activation::kTanh, -1, 1, kTiny, tanh_of), 3);
    EXPECT_LE(this->worst(*kernels, Activation::kTanh, -50, 50, kTiny, tanh_of), 3);
    EXPECT_LE(this->worst(*kernels, Activation::kSigmoid, -10, 10, kTiny, sigmoid_of), 4);
    EXPECT_LE(this->worst(*kernels, Activation::kSigmoid, -80, 80, kTiny, sigmoid_of), 4);
    const auto gelu_of = [](long double x) {
      return x / 2 * (1 + std::tanh(0.79788456080286535588L * (x + 0.044715L * x * x * x)));
    };
    EXPECT_LE(this->worst(*kernels, Activation::kGelu, -3, 6, 1e-2, gelu_of), 16);
    const auto relu_of = [](long double x) { return x > 0 ? x : 0; };
    EXPECT_EQ(this->worst(*kernels, Activation::kRelu, -3, 3, kTiny, relu_of), 0);
  }
}

// The loop runs v <- v / 2 + 1/2, which keeps 1, and v <- v + 1, which counts the rounds. A multiply-add that
// is left out would change the sums.
TYPED_TEST(KernelMath, PeakLoopDoesAllItsMultiplyAdds) {
  for (const Kernels<TypeParam>* kernels : available_kernels<TypeParam>()) {
    SCOPED_TRACE(kernels->name);
    const auto numbers = static_cast<TypeParam>(kernels->multiply_adds_a_round);
    EXPECT_GE(kernels->multiply_adds_a_round, kernels->vector);
    EXPECT_EQ(kernels->multiply_adds(1000, TypeParam(0.5), TypeParam(0.5)), numbers);
    EXPECT_EQ(kernels->multiply_adds(1000, 1, 1), 1001 * numbers);
  }
}

TYPED_TEST(KernelMath, HandlesInfinitiesAndNan) {
  using Real = TypeParam;
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  constexpr Index kCount = 16;
  for (const Kernels<Real>* kernels : available_kernels<Real>()) {
    SCOPED_TRACE(kernels->name);
    AlignedVector<Real> x(kCount), y(kCount);
    x[0] = kInfinity, x[1] = -kInfinity, x[2] = std::numeric_limits<Real>::quiet_NaN(), x[3] = Real(-0.0);
    const auto apply = [&](Activation function) {
      kernels->activation_forward[static_cast<int>(function)](kCount, x.data(), y.data());
    };
    apply(Activation::kTanh);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], -1);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], 0);
    apply(Activation::kSigmoid);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 0);
    EXPECT_TRUE(std::isnan(y[2]));
    EXPECT_EQ(y[3], Real(0.5));
    apply(Activation::kRelu);
    EXPECT_EQ(y[0], kInfinity);
    EXPECT_EQ(y[1], 0);
    EXPECT_TRUE(std::isnan(y[2]));
  }
}

// Checks value and derivative of each activation, over numbers of all magnitudes.
TYPED_TEST(KernelMath, ActivationsAndDerivativesAreAccurateAtEveryMagnitude) {
  using Real = TypeParam;
  using Limits = std::numeric_limits<Real>;
  AlignedVector<Real> x;
  for (int exponent = Limits::min_exponent - Limits::digits; exponent < Limits::max_exponent; ++exponent)
    for (const double digits : {0.5, -0.5, 0.7, -0.99})
      x.push_back(std::ldexp(static_cast<Real>(digits), exponent));
  for (const Real last : {Limits::max(), -Limits::max(), Limits::infinity(), -Limits::infinity()})
    x.push_back(last);
  const auto numbers = static_cast<Index>(x.size());
  x.resize(x.size() + kSlack, 1);
  const auto gelu = [](long double a) {
    if (std::abs(a) > 64) return std::pair<long double, long double>{a > 0 ? a : 0, a > 0};
    const long double u = 2 * 0.79788456080286535588L * (a + 0.044715L * a * a * a), s = sigmoid_of(u);
    return std::pair{a * s, s + a * 2 * 0.79788456080286535588L * (1 + 3 * 0.044715L * a * a) * s * (1 - s)};
  };
  const auto want = [&](Activation function, long double a) {
    const long double t = std::tanh(a), s = sigmoid_of(a);
    switch (function) {
      case Activation::kTanh: return std::pair{t, 1 - t * t};
      case Activation::kRelu: return std::pair<long double, long double>{a > 0 ? a : 0, a > 0};
      case Activation::kSigmoid: return std::pair{s, s * (1 - s)};
      case Activation::kGelu: return gelu(a);
    }
    return std::pair{t, t};
  };
  for (const Kernels<Real>* kernels : available_kernels<Real>())
    for (const Activation function :
         {Activation::kTanh, Activation::kRelu, Activation::kSigmoid, Activation::kGelu}) {
      SCOPED_TRACE(std::string(kernels->name) + ", activation " + std::to_string(static_cast<int>(function)));
      AlignedVector<Real> y(x.size()), dy(x.size(), 1), dx(x.size());
      kernels->activation_forward[static_cast<int>(function)](numbers, x.data(), y.data());
      kernels->activation_backward[static_cast<int>(function)](
          numbers, function == Activation::kGelu ? x.data() : y.data(), dy.data(), false, dx.data());
      for (Index i = 0; i < numbers; ++i) {
        const auto [value, slope] = want(function, x[i]);
        const double unit = 32 * this->kEpsilon;
        if (std::isinf(value))
          EXPECT_EQ(y[i], value) << "at " << x[i];
        else
          EXPECT_LE(std::abs(y[i] - value), unit * std::abs(value) + unit / 8) << "at " << x[i];
        EXPECT_LE(std::abs(dx[i] - slope), unit) << "slope at " << x[i];
      }
    }
}

TYPED_TEST(KernelMath, TransposesEveryShape) {
  using Real = TypeParam;
  for (const Kernels<Real>* kernels : available_kernels<Real>())
    for (Index rows = 1; rows <= 19; ++rows)
      for (Index columns = 1; columns <= 19; ++columns) {
        SCOPED_TRACE(std::string(kernels->name) + " " + std::to_string(rows) + " x " +
                     std::to_string(columns));
        const Index x_stride = columns + 2, y_stride = rows + 1;
        std::vector<Real> x(rows * x_stride), y(columns * y_stride, -1);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<Real>(i);
        kernels->transpose(x.data(), rows, columns, x_stride, y.data(), y_stride);
        for (Index r = 0; r < rows; ++r)
          for (Index c = 0; c < columns; ++c) ASSERT_EQ(y[c * y_stride + r], x[r * x_stride + c]);
        for (Index c = 0; c < columns; ++c) ASSERT_EQ(y[c * y_stride + rows], -1);
      }
}

TYPED_TEST(KernelMath, BestKernelsAreTheLastAvailable) {
  const auto all = available_kernels<TypeParam>();
  ASSERT_FALSE(all.empty());
  if (std::getenv("GRADWIRE_KERNELS") == nullptr) {
    EXPECT_STREQ(kernels_of<TypeParam>(KernelSet::kBest).name, all.back()->name);
    EXPECT_STREQ(kernels_name(KernelSet::kBest), all.back()->name);
  }
}

TEST(KernelMathDeathTest, UnknownKernelsErrorListsAvailableOnes) {
  // The choice is made once per process; death tests run before the others.
  EXPECT_EXIT(
      {
        setenv("GRADWIRE_KERNELS", "abacus", 1);
        try {
          kernels_of<float>(KernelSet::kBest);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "%s\n", error.what());
          std::exit(3);
        }
      },
      testing::ExitedWithCode(3), "GRADWIRE_KERNELS=abacus but this processor runs portable");
}

}  // namespace
}  // namespace gradwire
