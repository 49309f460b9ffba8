// Every operation of the scalar tapes at very large and very small numbers. Results are compared with those
// in a wider type in which no intermediate result overflows. Only divisors whose inverse overflows are left
// out.
#include <array>
#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "engine/tape/eager_tape.h"
#include "engine/tape/fixed_tape.h"
#include "engine/tape/lanes.h"
#include "tests/engine/tape/tape_operations.h"

namespace gradwire::tape_tests {
namespace {

template <class T>
struct First {
  using Real = T;
  static T of(const T& x) { return x; }
};
template <class R, std::size_t N>
struct First<Lanes<R, N>> {
  using Real = R;
  static R of(const Lanes<R, N>& x) { return x[N - 1]; }
};

template <class Real>
std::vector<Real> sizes() {
  using Limits = std::numeric_limits<Real>;
  std::vector<Real> all = {0, Limits::min(), 1, Limits::max(), Real(0.3), 3, 90, 800};
  for (Real x = Real(1e-30); x < Real(1e36); x *= Real(2e3)) all.push_back(x);
  if (sizeof(Real) == 8)
    for (const double x : {1e-300, 1e-200, 1e-150, 1e-100, 1e100, 1e150, 1e200, 1e300})
      all.push_back(static_cast<Real>(x));
  const std::size_t n = all.size();
  for (std::size_t i = 0; i < n; ++i) all.push_back(-all[i]);
  return all;
}

template <class Narrow, class Wide>
struct Pair {
  using NarrowTape = Narrow;
  using WideTape = Wide;
};
template <class P>
class TapeExtremes : public ::testing::Test {};
using Pairs = ::testing::Types<Pair<EagerTape<double>, FixedTape<long double, 16>>,
                               Pair<EagerTape<float>, FixedTape<double, 16>>,
                               Pair<EagerTape<Lanes<float, 8>>, FixedTape<double, 16>>>;
TYPED_TEST_SUITE(TapeExtremes, Pairs);

TYPED_TEST(TapeExtremes, FiniteValuesHaveNoNanDerivatives) {
  using Narrow = typename TypeParam::NarrowTape;
  using Wide = typename TypeParam::WideTape;
  using T = typename Narrow::Value;
  using Real = typename First<T>::Real;
  using Large = typename Wide::Value;
  const auto narrow = operations<Var<Narrow>>();
  const auto wide = operations<Var<Wide>>();
  for (std::size_t k = 0; k < narrow.size(); ++k)
    for (const Real a : sizes<Real>())
      for (const Real b : {Real(1.5), Real(-2e13), std::numeric_limits<Real>::min()}) {
        const std::array<Real, 3> at = {a, b, Real(0.25)};
        Narrow tape;
        Wide large;
        const std::array x{tape.variable(T(at[0])), tape.variable(T(at[1])), tape.variable(T(at[2]))};
        const std::array y{large.variable(at[0]), large.variable(at[1]), large.variable(at[2])};
        const auto f = narrow[k].on_tape(x);
        const auto g = wide[k].on_tape(y);
        backward(f);
        backward(g);
        if (!std::isfinite(First<T>::of(f.value()))) continue;
        for (int i = 0; i < 3; ++i) {
          const Large want = y[i].grad();
          if (std::isnan(want)) continue;
          const Real got = First<T>::of(x[i].grad());
          EXPECT_FALSE(std::isnan(got))
              << narrow[k].name << " by argument " << i << " at " << a << ", " << b << ": " << want;
          const bool fits = std::abs(want) < std::numeric_limits<Real>::max() / 4;
          EXPECT_TRUE(!fits || std::isfinite(got))
              << narrow[k].name << " by argument " << i << " at " << a << ", " << b << ": " << want;
        }
      }
}

}  // namespace
}  // namespace gradwire::tape_tests
