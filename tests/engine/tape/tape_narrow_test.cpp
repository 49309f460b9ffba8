// Reductions of 16-bit numbers, of float and of large doubles. No intermediate result loses a value that fits
// the type.
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "engine/tape/eager_tape.h"
#include "engine/tape/fixed_tape.h"

namespace gradwire {
namespace {

template <class T>
double number(const T& value) {
  return static_cast<double>(value);
}
// Half the relative distance to the next number of T.
template <class T>
constexpr double kRounding = 0;
template <>
constexpr double kRounding<double> = 0x1p-52;
template <>
constexpr double kRounding<float> = 0x1p-23;
template <>
constexpr double kRounding<Float16> = 0x1p-10;
template <>
constexpr double kRounding<BFloat16> = 0x1p-7;

template <class T>
class NarrowReductions : public ::testing::Test {
 public:
  EagerTape<T> tape;
  const typename EagerTape<T>::Checkpoint start = tape.checkpoint();
  std::vector<Var<EagerTape<T>>> variables(const std::vector<double>& values) {
    std::vector<Var<EagerTape<T>>> all;
    for (const double v : values) all.push_back(tape.variable(T(v)));
    return all;
  }
  void expect_near(double got, double wanted, const char* what) {
    EXPECT_NEAR(got, wanted, 4 * kRounding<T> * std::abs(wanted)) << what;
  }
};
using Types = ::testing::Types<double, float, Float16, BFloat16>;
TYPED_TEST_SUITE(NarrowReductions, Types);

// Returns the number up to which the type holds every integer.
template <class T>
double large_number() {
  if constexpr (std::is_same_v<T, double>) return 0x1p53;
  if constexpr (std::is_same_v<T, float>) return 0x1p24;
  if constexpr (std::is_same_v<T, Float16>) return 0x1p11;
  return 0x1p8;
}

TYPED_TEST(NarrowReductions, SharesOfEqualNumbersAreEqualAtAnySize) {
  using T = TypeParam;
  for (const double x : {0.0, 20.0, -100.0, 1000.0, -60000.0, 1e5, 1e16}) {
    if (std::isinf(number(T(x)))) continue;
    for (const std::size_t n : {2u, 3u, 10u}) {
      const auto all = this->variables(std::vector<double>(n, x));
      std::vector<Var<EagerTape<T>>> shares(n);
      softmax(std::span<const Var<EagerTape<T>>>(all), std::span(shares));
      double sum = 0;
      for (const auto& share : shares) {
        this->expect_near(number(share.value()), 1.0 / static_cast<double>(n), "share");
        sum += number(share.value());
      }
      EXPECT_NEAR(sum, 1, static_cast<double>(n) * kRounding<T>) << x;
      const auto log_sum = log_sum_exp(all);
      backward(log_sum);
      for (const auto& variable : all)
        this->expect_near(number(variable.grad()), 1.0 / static_cast<double>(n), "slope");
      this->tape.rewind(this->start);
    }
  }
}

TYPED_TEST(NarrowReductions, SharesHaveRightDerivativesAtAnySize) {
  using T = TypeParam;
  const double base = large_number<T>() / 4;
  const auto all = this->variables({base, base + 1, base - 1});
  const double e = std::exp(1.0), sum = 1 + e + 1 / e, wanted[] = {1 / sum, e / sum, 1 / e / sum};
  const auto shares = softmax(std::array{all[0], all[1], all[2]});
  for (int i = 0; i < 3; ++i) this->expect_near(number(shares[i].value()), wanted[i], "share");
  backward(shares[0]);
  this->expect_near(number(all[1].grad()), -wanted[0] * wanted[1], "slope");
  this->expect_near(number(all[2].grad()), -wanted[0] * wanted[2], "slope");
}

TYPED_TEST(NarrowReductions, VarianceOfNeighboursLosesNoDigits) {
  using T = TypeParam;
  const double base = large_number<T>() / 2;
  for (const bool as_range : {false, true}) {
    const auto all = this->variables({base, base + 1, base + 2});
    const auto range = this->tape.pack(all);
    const auto biased = as_range ? variance_biased(range) : variance_biased(all);
    backward(biased);
    this->expect_near(number(biased.value()), 2.0 / 3, "biased");
    this->expect_near(number(all[0].grad()), -2.0 / 3, "slope");
    EXPECT_EQ(number(all[1].grad()), 0);
    this->expect_near(number(all[2].grad()), 2.0 / 3, "slope");
    this->expect_near(number((as_range ? variance(range) : variance(all)).value()), 1, "variance");
    this->tape.rewind(this->start);
  }
}

TYPED_TEST(NarrowReductions, MeansAndProductsThatFitDoNotOverflow) {
  using T = TypeParam;
  if (std::is_same_v<T, double>) return;
  const double most = std::is_same_v<T, Float16> ? 60000 : 0x1.8p127,
               root = std::is_same_v<T, Float16> ? 200 : 0x1p63;
  const auto all = this->variables({most, most});
  const auto roots = this->variables({root, root, root});
  const double square = root * root;
  this->expect_near(number(mean(all[0], all[1]).value()), most, "mean");
  this->expect_near(number(negative_mean(all[0], all[1]).value()), -most, "negative_mean");
  this->expect_near(number(reduce_mean(all).value()), most, "reduce_mean");
  this->expect_near(number(reduce_negative_mean(all).value()), -most, "reduce_negative_mean");
  this->expect_near(number(reduce_mean(this->tape.pack(all)).value()), most, "reduce_mean of a range");
  this->expect_near(number(mean_squares(roots[0], roots[1]).value()), square, "mean_squares");
  this->expect_near(number(reduce_mean_squares(roots).value()), square, "reduce_mean_squares");
  const auto signs = this->variables({most, most, -most, 1});
  EXPECT_EQ(number(reduce_sum(std::array{signs[0], signs[1], signs[2]}).value()), number(T(most)));
  EXPECT_EQ(number(reduce_sub(std::array{signs[2], signs[0], signs[2], signs[2]}).value()), 0);
  const auto factors = this->variables({most, most, 1 / most, 1 / most});
  const auto product = reduce_mul(factors);
  EXPECT_NEAR(number(product.value()), 1, 8 * kRounding<T>);
  backward(product);
  EXPECT_NEAR(number(factors[0].grad()) * most, 1, 8 * kRounding<T>);
  const auto inner = inner_product(std::array{signs[0], signs[0]}, std::array{signs[0], signs[2]});
  EXPECT_EQ(number(inner.value()), 0);
  EXPECT_EQ(number(inner_product(this->tape.pack(std::array{signs[0], signs[0]}),
                                 this->tape.pack(std::array{signs[0], signs[2]}))
                       .value()),
            0);
}

TYPED_TEST(NarrowReductions, MeanCountsMoreNumbersThanTheTypeHolds) {
  using T = TypeParam;
  const std::size_t n = 70'001;  // more than Float16 holds, and not a BFloat16
  const std::vector<T> ones(n, T(1));
  const auto mean = reduce_mean(this->tape.leaves(ones));
  EXPECT_EQ(number(mean.value()), 1);
}

TEST(NarrowReductions, MeanOnFixedTapeDoesNotOverflow) {
  FixedTape<Float16, 4> tape;
  const auto a = tape.variable(Float16(60000.0)), b = tape.variable(Float16(60000.0));
  EXPECT_NEAR(number(reduce_mean(a, b).value()), 60000, 60);
}

TEST(LogSumExp, HasZeroDerivativeIfAllAreMinusInfinity) {
  EagerTape<double> tape;
  const double infinity = std::numeric_limits<double>::infinity();
  const auto a = tape.variable(-infinity), b = tape.variable(-infinity);
  const auto y = log_sum_exp(a, b);
  backward(y);
  EXPECT_EQ(y.value(), -infinity);
  EXPECT_EQ(a.grad(), 0);
}

}  // namespace
}  // namespace gradwire
