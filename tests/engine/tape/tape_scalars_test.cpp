// Tapes of 16-bit numbers and of binary128. Every operation is compared with central differences of its
// formula.
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "engine/tape/eager_tape.h"
#include "engine/tape/fixed_tape.h"
#include "tests/engine/tape/match_formulas.h"

namespace gradwire::tape_tests {
namespace {

// Tolerances for a few roundings of relative size 2^-11 (Float16) or 2^-8 (BFloat16), which derivatives
// magnify.
constexpr Within kFp16{.value = 4e-3, .slope = 1e-2, .largest = 3e4, .nearest = 0.1};
constexpr Within kBf16{.value = 3e-2, .slope = 8e-2, .nearest = 0.1};

TEST(TapeOfFloat16, MatchesFormulasAndCentralDifferences) {
  expect_formulas<EagerTape<Float16>>(kFp16);
  expect_formulas<FixedTape<Float16, 16>>(kFp16);
}

TEST(TapeOfBFloat16, MatchesFormulasAndCentralDifferences) {
  expect_formulas<EagerTape<BFloat16>>(kBf16);
  expect_formulas<FixedTape<BFloat16, 16>>(kBf16);
}

TEST(TapeOfBFloat16, RoundsSumsOnce) {
  EagerTape<BFloat16> tape(1000);
  for (BFloat16& x : tape.parameter_values()) x = 1;  // one by one, the sum would stop growing at 256
  EXPECT_EQ(static_cast<double>(reduce_sum(tape.parameters()).value()), 1000);
}

#if GRADWIRE_HAS_FLOAT128
TEST(TapeOfFloat128, MatchesFormulasAndCentralDifferences) {
  expect_formulas<EagerTape<Float128>>({.value = 1e-13, .slope = 2e-7});
  expect_formulas<FixedTape<Float128, 16>>({.value = 1e-13, .slope = 2e-7});
}

// Checks (e^x)' = e^x, and that the derivative of sin^2 + cos^2 is 0, to 32 digits. Central differences
// cannot show so many.
TEST(TapeOfFloat128, HasThirtyTwoDigits) {
  EagerTape<Float128> tape;
  const Float128 third = Float128(1) / 3;
  const auto x = tape.variable(third);
  const auto gone = [](Float128 difference) { return std::abs(static_cast<double>(difference)) < 1e-32; };
  const auto e = exp(x);
  backward(e);
  EXPECT_TRUE(gone(x.grad() - e.value()));
  backward(sqr(sin(x)) + sqr(cos(x)));
  EXPECT_TRUE(gone(x.grad()));
  backward(log(exp(x)) + tanh(x) * 0 + sqrt(x) * sqrt(x) + pow(x, 3));
  EXPECT_TRUE(gone(x.grad() - (2 + third)));
  backward(sigmoid(x));
  const Float128 s = Float128(1) / (1 + exp(-third));
  EXPECT_TRUE(gone(x.grad() - s * (1 - s)));
  EXPECT_FALSE(gone(third - Float128(1.0 / 3)));
}
#endif

}  // namespace
}  // namespace gradwire::tape_tests
