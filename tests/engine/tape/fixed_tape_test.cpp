#include "engine/tape/fixed_tape.h"

#include <array>
#include <gtest/gtest.h>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "engine/tape/eager_tape.h"
#include "engine/tape/lanes.h"

namespace gradwire {
namespace {

template <class V>
V graph(V a, V b) {
  V c = a * b + pow3(b);
  c += relu(c - a) / 2;
  return sqr(c) + reduce_mul(a, b, c);
}

TEST(FixedTape, MatchesBitsOfEagerTape) {
  for (const double x : {-4.0, 0.5, 2.75}) {
    EagerTape<double> tape;
    FixedTape<double, 16> fixed;
    const auto a = tape.variable(x), b = tape.variable(2), f = graph(a, b);
    const auto p = fixed.variable(x), q = fixed.variable(2), g = graph(p, q);
    backward(f);
    backward(g);
    EXPECT_EQ(f.value(), g.value());
    EXPECT_EQ(a.grad(), p.grad());
    EXPECT_EQ(b.grad(), q.grad());
    const auto [value, gradient] = value_and_gradient<16>([](auto u, auto v) { return graph(u, v); }, x, 2.0);
    EXPECT_EQ(value, f.value());
    EXPECT_EQ(gradient, (std::array{a.grad(), b.grad()}));
  }
}

TEST(FixedTape, ComputesIntegersInDoubleAndOthersInWidestType) {
  const auto tiny = [](auto a, auto b) { return sqr(a + b - (a * b + pow3(b))) / 2; };
  const auto whole = value_and_gradient<16>(tiny, -41, 2);
  static_assert(std::is_same_v<decltype(whole.value), double>);
  EXPECT_EQ(whole.value, 612.5);
  EXPECT_EQ(whole.gradient, (std::array{-35.0, 1050.0}));
  EXPECT_EQ(value_and_gradient<16>(tiny, -41, 2.0f).gradient, whole.gradient);
  EXPECT_EQ(value_and_gradient<16>(tiny, -41L, '\2').gradient, whole.gradient);
  const auto cube = [](auto a, auto b) { return a * b * b; };
  EXPECT_EQ(value_and_gradient<8>(cube, 1.0f, 0.1).gradient[1], 2 * 0.1);  // double, not the nearest float
  static_assert(std::is_same_v<decltype(value_and_gradient<8>(cube, 1.0f, 2.0f).value), float>);
  using Eight = Lanes<double, 8>;
  static_assert(std::is_same_v<decltype(value_and_gradient<8>(cube, Eight(1), 2).value), Eight>);
  EXPECT_EQ(value_and_gradient<8>(cube, 3, Eight(2)).gradient[1][7], 12);
}

TEST(FixedTape, RejectsGradientBeforeBackward) {
  FixedTape<double, 4> tape;
  const auto a = tape.variable(3), b = sqr(a);
  EXPECT_THROW(static_cast<void>(a.grad()), std::logic_error);
  EXPECT_THROW(static_cast<void>(tape.gradient(b)), std::logic_error);
  tape.backward(b);
  EXPECT_EQ(a.grad(), 6);
  const auto later = a * b;
  EXPECT_THROW(static_cast<void>(later.grad()), std::logic_error);
  tape.backward(b);
  EXPECT_EQ(later.grad(), 0);
}

TEST(FixedTape, BackwardMayRepeatAndStartAnywhere) {
  FixedTape<double, 4> tape;
  const auto a = tape.variable(3), b = sqr(a), c = b * a;
  tape.backward(c);
  tape.backward(c);
  EXPECT_EQ(a.grad(), 27);
  tape.backward(b, 0.5);
  EXPECT_EQ(a.grad(), 3);
  EXPECT_EQ(c.grad(), 0);
}

TEST(FixedTape, RejectsTooLargeGraph) {
  FixedTape<double, 3> tape;
  const auto a = tape.variable(3), b = tape.variable(2);
  const auto c = a * b + 1;  // the number takes no record
  tape.backward(c);
  EXPECT_EQ(a.grad(), 2);
  EXPECT_THROW(sqr(c), std::logic_error);
  EXPECT_THROW(reduce_sum(a, b), std::logic_error);
  EXPECT_THROW(reduce_mul(a, b, c, c), std::logic_error);
  EXPECT_THROW((value_and_gradient<2>([](auto x) { return sqr(sqr(x)); }, 1.0)), std::logic_error);
  EXPECT_EQ((value_and_gradient<3>([](auto x) { return sqr(sqr(x)); }, 1.0).gradient[0]), 4);
}

TEST(FixedTape, RejectsForeignHandles) {
  FixedTape<double, 4> tape, other;
  const auto a = tape.variable(1), b = other.variable(1);
  const FixedTape<double, 4>::Var none;
  EXPECT_THROW(a * b, std::logic_error);
  EXPECT_THROW(a * none, std::logic_error);
  EXPECT_THROW(none + 1, std::logic_error);
  EXPECT_THROW(reduce_sum(a, b), std::logic_error);
  EXPECT_THROW(tape.backward(b), std::logic_error);
  EXPECT_THROW(static_cast<void>(tape.gradient(b)), std::logic_error);
  EXPECT_THROW(static_cast<void>(none.grad()), std::logic_error);
  EXPECT_THROW(reduce_sum(std::vector<FixedTape<double, 4>::Var>()), std::logic_error);
}

TEST(FixedTape, ConstantsTakeNoRecord) {
  FixedTape<double, 2> tape;
  const auto a = tape.variable(3);
  tape.backward(a * tape.constant(5));
  EXPECT_EQ(a.grad(), 5);
}

}  // namespace
}  // namespace gradwire
