// The tape of programs (gradwire/tape.h): every operation has the bits of the internal tape, and misuse has
// its errors.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/tape/eager_tape.h"
#include "gradwire/tape.h"
#include "tests/engine/tape/expect_misuse.h"
#include "tests/engine/tape/tape_operations.h"

namespace gradwire {
namespace {

using V = Tape::Var;
using Numbers = std::array<double, 4>;  // value; derivatives by the three arguments

template <class AnyTape, class Operation>
Numbers numbers_of(const Operation& op, const std::array<double, 3>& x) {
  AnyTape tape;
  const std::array v{tape.variable(x[0]), tape.variable(x[1]), tape.variable(x[2])};
  const auto f = op.on_tape(v);
  backward(f, 0.75);
  return {f.value(), v[0].grad(), v[1].grad(), v[2].grad()};
}

// The sign of a nan depends on the order in which the compiler adds.
bool same(double x, double y) {
  return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y) ||
         (std::isnan(x) && std::isnan(y));
}

// operations<V>() compiles only if the public tape has every operation that the table has.
TEST(PublicTape, HasTheBitsOfTheInternalTapeInEveryOperation) {
  const auto inner = tape_tests::operations<EagerTape<double>::Var>();
  const auto outer = tape_tests::operations<V>();
  ASSERT_EQ(inner.size(), outer.size());
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<double> points = {-2.25, -1,      -0.0,  0.0, 0.1,  1,  3.1875,
                                      700.5, -745.25, 1e200, inf, -inf, nan};
  for (std::size_t k = 0; k < inner.size(); ++k) {
    EXPECT_STREQ(inner[k].name, outer[k].name);
    for (const double a : points)
      for (const double b : points)
        for (const double c : {0.3, -2.5}) {
          const std::array<double, 3> x{a, b, c};
          const Numbers want = numbers_of<EagerTape<double>>(inner[k], x),
                        got = numbers_of<Tape>(outer[k], x);
          for (std::size_t i = 0; i < 4; ++i)
            ASSERT_TRUE(same(got[i], want[i])) << inner[k].name << " is " << got[i] << ", not " << want[i]
                                               << ", at " << a << ", " << b << ", " << c << ": number " << i;
        }
  }
}

TEST(PublicTape, ReductionsOfLongListsHaveTheBitsOfTheInternalTape) {
  Tape outer;
  EagerTape<double> inner;
  std::vector<V> x;
  std::vector<EagerTape<double>::Var> y;
  for (int i = 0; i < 1000; ++i) {
    const double value = std::sin(i) + 1.5;
    x.push_back(outer.variable(value));
    y.push_back(inner.variable(value));
  }
  const auto expect_same = [&](const V& f, const auto& g) {
    EXPECT_EQ(f.value(), g.value());
    backward(f);
    backward(g);
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i].grad(), y[i].grad()) << i;
  };
  expect_same(reduce_sum(x), reduce_sum(y));
  expect_same(reduce_mul(x), reduce_mul(y));
  expect_same(log_sum_exp(x), log_sum_exp(y));
  expect_same(variance(x), variance(y));
  expect_same(inner_product(x, x), inner_product(y, y));
  std::vector<EagerTape<double>::Var> shares(y.size());
  softmax(std::span<const EagerTape<double>::Var>(y), std::span(shares));
  expect_same(softmax(x)[7], shares[7]);
}

TEST(PublicTape, TakesEveryKindOfList) {
  Tape tape;
  std::vector<V> list = tape.variables(std::array{1.0, 2.0, 4.0});
  const std::array<V, 2> two{list[0], list[1]};
  EXPECT_EQ(reduce_sum(list).value(), 7);
  EXPECT_EQ(reduce_sum(std::span<V>(list)).value(), 7);
  EXPECT_EQ(reduce_sum(std::span<const V>(list).first(2)).value(), 3);
  EXPECT_EQ(reduce_sum(two).value(), 3);
  EXPECT_EQ(reduce_sum({list[1], list[2]}).value(), 6);
  EXPECT_EQ(reduce_sum(list[2]).value(), 4);
  EXPECT_EQ(inner_product({list[1], list[2]}, two).value(), 10);
  std::vector<V> shares(2);
  softmax(two, shares);
  EXPECT_NEAR(shares[0].value() + shares[1].value(), 1, 1e-15);
}

TEST(PublicTape, AddsGradientsOfParametersUntilTheyAreZeroed) {
  Tape tape(3);
  EXPECT_EQ(tape.parameter_values()[1], 0);
  tape.parameter_values()[1] = 5;
  const auto start = tape.checkpoint();
  for (const double y : {1.0, 2.0}) {
    const auto p = tape.parameters();
    ASSERT_EQ(p.size(), 3u);
    EXPECT_EQ(p[1].value(), 5);
    backward(sqr(p[1] - y), 0.5);
    tape.rewind(start);
  }
  EXPECT_EQ(tape.parameter_gradients()[1], 7);
  EXPECT_EQ(tape.parameter_gradients()[0], 0);
  EXPECT_EQ(tape.parameter(1).grad(), 7);
  tape.zero_parameter_gradients();
  EXPECT_EQ(tape.parameter_gradients()[1], 0);
}

TEST(PublicTape, HandlesStayValidWhenTheirTapeMoves) {
  Tape first(1);
  const V a = first.variable(3);
  const auto start = first.checkpoint();
  Tape second = std::move(first);
  backward(a * a);
  EXPECT_EQ(a.grad(), 6);
  second.rewind(start);
  EXPECT_THROW(first.variable(1), std::logic_error);  // NOLINT(bugprone-use-after-move)
  first = Tape();
  EXPECT_EQ(first.variable(1).value(), 1);
}

using Cases = std::vector<std::function<void()>>;

TEST(PublicTape, RejectsDefaultHandles) {
  Tape tape;
  V a = tape.variable(1), none;
  for (const auto& f :
       Cases{[&] { none + a; }, [&] { a + none; }, [&] { none + 1; }, [&] { 1 - none; }, [&] { exp(none); },
             [&] { none *= 2; },
             [&] {
               reduce_sum({a, none});
             },
             [&] {
               reduce_sum({none, a});
             },
             [&] {
               softmax({none, a});
             },
             [&] { inner_product(a, none); }, [&] { inner_product_with_bias(a, a, none); },
             [&] { backward(none); }, [&] { tape.backward(none); }, [&] { static_cast<void>(none.grad()); }})
    expect_misuse(f, "a Var that belongs to no tape");
}

TEST(PublicTape, RejectsOperationsOnTwoTapes) {
  Tape tape, other;
  const V a = tape.variable(1), b = other.variable(1);
  for (const auto& f : Cases{[&] { a* b; }, [&] { max(a, b); }, [&] { tape.backward(b); },
                             [&] {
                               reduce_mean({a, b});
                             },
                             [&] {
                               softmax({a, b});
                             },
                             [&] { inner_product(a, b); }, [&] { inner_product_with_bias(a, a, b); }})
    expect_misuse(f, "an operation has Vars of two tapes");
}

TEST(PublicTape, RejectsStaleHandlesAndCheckpoints) {
  Tape tape, other;
  const auto start = tape.checkpoint(), foreign = other.checkpoint();
  const V a = tape.variable(1);
  const auto later = tape.checkpoint();
  tape.rewind(start);
  tape.variable(2);
  expect_misuse([&] { sqr(a); }, "rewound");
  expect_misuse([&] { backward(a); }, "rewound");
  expect_misuse([&] { reduce_sum(a); }, "rewound");
  expect_misuse([&] { static_cast<void>(a.grad()); }, "rewound");
  tape.rewind(start);
  expect_misuse([&] { tape.rewind(later); }, "checkpoint");
  expect_misuse([&] { tape.rewind(foreign); }, "checkpoint");
  expect_misuse([&] { tape.rewind({}); }, "checkpoint");
}

TEST(PublicTape, RejectsOtherMisuse) {
  Tape tape(2);
  const V a = tape.variable(1);
  std::vector<V> one(1);
  expect_misuse([&] { tape.parameter(2); }, "parameter 2 of a tape of 2");
  expect_misuse([&] { static_cast<void>(a.grad()); }, "call backward() first");
  expect_misuse([&] { static_cast<void>(tape.constant(1).grad()); }, "the gradient of a constant");
  expect_misuse([&] { reduce_sum(std::vector<V>()); }, "at least one number");
  expect_misuse([&] { softmax(std::vector<V>()); }, "at least one number");
  expect_misuse([&] { inner_product({a, a}, a); }, "inner product of 2 and 1 numbers");
  expect_misuse([&] { softmax({a, a}, one); }, "the numbers of shares and arguments differ");
  expect_misuse([&] { variance(a); }, "variance needs two numbers");
  backward(sqr(a));  // the tape still works
  EXPECT_EQ(a.grad(), 2);
}

}  // namespace
}  // namespace gradwire
