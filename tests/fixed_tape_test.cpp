#include "engine/fixed_tape.h"

#include <array>
#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

#include "engine/tape.h"

namespace gradwire {
namespace {

template <class V>
V graph(V a, V b) {
  V c = a * b + pow3(b);
  c += relu(c - a) / 2;
  return sqr(c) + reduce_mul(a, b, c);
}

TEST(FixedTape, GivesTheBitsOfTheEagerTape) {
  for (const double x : {-4.0, 0.5, 2.75}) {
    Tape<double> tape;
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

TEST(FixedTape, BackwardMayBeRepeatedAndStartAnywhere) {
  FixedTape<double, 4> tape;
  const auto a = tape.variable(3), b = sqr(a), c = b * a;
  tape.backward(c);
  tape.backward(c);
  EXPECT_EQ(a.grad(), 27);
  tape.backward(b, 0.5);
  EXPECT_EQ(a.grad(), 3);
  EXPECT_EQ(c.grad(), 0);
}

TEST(FixedTape, TooSmallForItsGraphThrows) {
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

TEST(FixedTape, ForeignHandlesThrow) {
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
