// Weighted sums of outer products, and products of nearby lanes, compared with their naive twins bit for bit.
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/kernels/select.h"

namespace gradwire {
namespace {

template <class Real>
class KernelGram : public ::testing::Test {
 protected:
  static Real multiply_add(const Kernels<Real>& kernels, Real a, Real b, Real c) {
    return std::string(kernels.name) == "portable" ? a * b + c : std::fma(a, b, c);
  }

  static void check(const Kernels<Real>& kernels, Index d, Index rows) {
    Random random(static_cast<std::uint64_t>(d * 1000 + rows), "gram");
    const Index stride = d + kSlack;
    std::vector<Real> x(rows * stride, std::nanf("")), weight(rows), upper(d * (d + 1) / 2 + 1, 5);
    for (Index l = 0; l < rows; ++l) {
      weight[l] = static_cast<Real>(random.normal());
      for (Index a = 0; a < d; ++a) x[l * stride + a] = static_cast<Real>(random.normal());
    }
    std::vector<Real> want = upper;
    Real* entry = want.data();
    for (Index a = 0; a < d; ++a)
      for (Index b = a; b < d; ++b) {
        Real sum = 0;
        for (Index l = 0; l < rows; ++l)
          sum = multiply_add(kernels, weight[l] * x[l * stride + a], x[l * stride + b], sum);
        *entry++ += sum;
      }
    kernels.gram({x.data(), stride, d, rows}, weight.data(), upper.data());
    ASSERT_EQ(upper, want);
  }

  // Checks the products of two lanes. Results that involve numbers after the last lane of a row have no
  // meaning and are not compared.
  static void check_lanes(const Kernels<Real>& kernels, Index channels, Index lanes, Index distances) {
    Random random(static_cast<std::uint64_t>(channels * 1000 + lanes), "lanes");
    std::vector<Real> x(channels * lanes + kSlack), got(distances * lanes + kSlack, 5);
    for (Real& number : x) number = static_cast<Real>(random.normal());
    kernels.lane_grams(x.data(), channels, lanes, distances, got.data());
    for (Index k = 0; k < distances; ++k)
      for (Index l = 0; l + k < lanes; ++l) {
        Real sum = 0;
        for (Index c = 0; c < channels; ++c)
          sum = multiply_add(kernels, x[c * lanes + l], x[c * lanes + l + k], sum);
        ASSERT_EQ(got[k * lanes + l], sum) << "lanes " << l << " and " << l + k;
      }
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(KernelGram, Reals);

TYPED_TEST(KernelGram, EqualsNaiveTwinForEverySize) {
  for (const Kernels<TypeParam>* kernels : available_kernels<TypeParam>()) {
    for (Index d = 1; d <= 70; ++d)
      for (const Index rows : {1, 2, 5}) {
        SCOPED_TRACE(std::string(kernels->name) + ", " + std::to_string(rows) + " x " + std::to_string(d));
        this->check(*kernels, d, rows);
        if (this->HasFatalFailure()) return;
      }
    for (const Index rows : {0, 3, 64, static_cast<int>(kMostGramRows)})
      for (const Index d : {1, 8, 68, 131}) this->check(*kernels, d, rows);
  }
}

TYPED_TEST(KernelGram, LaneProductsEqualNaiveTwinForEveryDistance) {
  for (const Kernels<TypeParam>* kernels : available_kernels<TypeParam>())
    for (const Index lanes : {4, 8, 12, 16, 28, 64})
      for (Index distances = 1; distances <= kSlack; ++distances) {
        SCOPED_TRACE(std::string(kernels->name) + ", " + std::to_string(lanes) + " lanes, " +
                     std::to_string(distances) + " distances");
        for (const Index channels : {1, 5}) this->check_lanes(*kernels, channels, lanes, distances);
        if (this->HasFatalFailure()) return;
      }
}

}  // namespace
}  // namespace gradwire
