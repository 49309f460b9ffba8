#include <array>
#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/tape/eager_tape.h"
#include "engine/tape/fixed_tape.h"
#include "engine/tape/lanes.h"
#include "tests/engine/tape/expect_misuse.h"

namespace gradwire {
namespace {

using V = EagerTape<double>::Var;
using R = EagerTape<double>::Range;

using Cases = std::vector<std::function<void()>>;

TEST(TapeMisuse, RejectsDefaultHandles) {
  EagerTape<double> tape(2);
  V a = tape.variable(1), none;
  const R empty, p = tape.parameters();
  for (const auto& f : Cases{[&] { none + a; },
                             [&] { a + none; },
                             [&] { none + 1; },
                             [&] { 1 - none; },
                             [&] { -none; },
                             [&] { exp(none); },
                             [&] { pow(2, none); },
                             [&] { a += none; },
                             [&] { none *= 2; },
                             [&] { max(a, none); },
                             [&] { reduce_sum(a, none); },
                             [&] { reduce_sum(none, a); },
                             [&] { log_sum_exp(a, none); },
                             [&] { inner_product(std::array{a}, std::array{none}); },
                             [&] { inner_product_with_bias(p, p, none); },
                             [&] { softmax(none, a); },
                             [&] { tape.backward(none); },
                             [&] { backward(none); },
                             [&] { static_cast<void>(none.grad()); },
                             [&] { static_cast<void>(tape.gradient(none)); },
                             [&] { reduce_sum(p, empty.subrange(0, 0)); },
                             [&] { empty.subrange(0, 0); },
                             [&] { tape.values(empty); },
                             [&] {
                               inner_product(p, std::array{p, empty});
                             },
                             [&] {
                               tape.pack(std::array{a, none});
                             }}) {
    expect_misuse(f, "");
  }
  expect_misuse([&] { exp(none); }, "belongs to no tape");
  expect_misuse([&] { reduce_sum(a, none); }, "belongs to no tape");
}

TEST(TapeMisuse, RejectsOperationsOnTwoTapes) {
  EagerTape<double> tape(2), other(2);
  const V a = tape.variable(1), b = other.variable(1);
  for (const auto& f :
       Cases{[&] { a* b; }, [&] { tape.backward(b); }, [&] { static_cast<void>(tape.gradient(b)); },
             [&] { reduce_mean(a, b); }, [&] { reduce_mul(a, b); }, [&] { softmax(a, b); },
             [&] { inner_product(tape.parameters(), other.parameters()); },
             [&] { inner_product_with_bias(tape.parameters(), tape.parameters(), b); },
             [&] { reduce_sum(tape.parameters(), other.parameters()); },
             [&] { tape.values(other.parameters()); },
             [&] {
               tape.pack(std::array{a, b});
             }}) {
    expect_misuse(f, "two tapes");
  }
}

TEST(TapeMisuse, DetectsUseAfterRewindEvenIfPlaceIsInUseAgain) {
  EagerTape<double> tape;
  const auto start = tape.checkpoint();
  const V a = tape.variable(1);
  const R range = tape.leaves(std::array{1.0, 2.0});
  const auto later = tape.checkpoint();
  tape.rewind(start);
  for (const bool taken : {false, true}) {
    if (taken) {
      for (int i = 0; i < 10; ++i) tape.variable(2);
    }
    expect_misuse([&] { sqr(a); }, "rewound");
    expect_misuse([&] { tape.variable(1) * a; }, "rewound");
    expect_misuse([&] { tape.backward(a); }, "rewound");
    expect_misuse([&] { static_cast<void>(a.grad()); }, "rewound");
    expect_misuse([&] { reduce_sum(range); }, "rewound");
    expect_misuse([&] { reduce_sum(tape.variable(1), a); }, "rewound");
    expect_misuse([&] { range[0]; }, "rewound");
  }
  tape.rewind(start);
  expect_misuse([&] { tape.rewind(later); }, "checkpoint");
  expect_misuse([&] { tape.rewind({}); }, "checkpoint");
}

// After a rewind the tape has at least as many scalars and operations as before, but different ones. A stale
// checkpoint's counts do not fit them, and a backward pass from there would follow links that were never
// written.
template <class T>
void expect_stale_checkpoints_are_refused() {
  EagerTape<T> tape(2);
  const auto p = tape.parameters();
  const auto leaves = [&](std::size_t n) { return tape.leaves(std::vector<T>(n, T(1))); };
  const auto start = tape.checkpoint();
  leaves(5);
  const auto a = tape.variable(T(1));
  const auto stale = tape.checkpoint();
  tape.rewind(start);
  const std::function<void()> others[] = {[&] { leaves(200); },
                                          [&] {
                                            for (int i = 0; i < 200; ++i) reduce_sum(p, leaves(1));
                                          },
                                          [&] {
                                            for (int i = 0; i < 200; ++i) tape.variable(T(2));
                                          },
                                          [&] { leaves(5), tape.variable(T(1)); }};
  for (const auto& record : others) {
    record();
    expect_misuse([&] { tape.rewind(stale); }, "checkpoint");
    expect_misuse([&] { sqr(a); }, "rewound");
    const auto inner = tape.checkpoint();
    const auto x = tape.variable(T(3));
    for (int i = 0; i < 3; ++i) {
      tape.backward(sqr(x) * x);
      expect_misuse([&] { tape.rewind(stale); }, "checkpoint");
    }
    tape.rewind(inner);
    expect_misuse([&] { tape.rewind(stale); }, "checkpoint");
    expect_misuse([&] { sqr(x); }, "rewound");
    tape.rewind(start);
  }
}
TEST(TapeMisuse, RejectsStaleCheckpoints) {
  expect_stale_checkpoints_are_refused<double>();
  expect_stale_checkpoints_are_refused<Lanes<double, 8>>();
  expect_stale_checkpoints_are_refused<Lanes<float, 16>>();
}

TEST(TapeMisuse, RejectsStaleCheckpointsTakenAtTheSamePlace) {
  EagerTape<double> tape;
  tape.variable(0);
  const auto bottom = tape.checkpoint();
  tape.variable(1);
  const auto first = tape.checkpoint();
  tape.rewind(bottom);
  tape.leaves(std::array{2.0});
  const auto second = tape.checkpoint();  // as many scalars, one operation more
  for (int i = 0; i < 3; ++i) {
    tape.variable(3);
    expect_misuse([&] { tape.rewind(first); }, "checkpoint");
    tape.rewind(second);
  }
  tape.rewind(bottom);
  expect_misuse([&] { tape.rewind(second); }, "checkpoint");
}

TEST(TapeMisuse, EmptyLeavesRecordNothing) {
  EagerTape<double> tape(1);
  const auto before = tape.checkpoint();
  EXPECT_EQ(tape.leaves({}).size(), 0u);
  const auto later = tape.checkpoint();
  tape.rewind(before);
  const V x = tape.leaves(std::array{2.0})[0];
  backward(sqr(x));
  EXPECT_EQ(x.grad(), 4);
  tape.rewind(later);
  expect_misuse([&] { sqr(x); }, "rewound");
  backward(tape.parameters()[0]);
  EXPECT_EQ(tape.parameter_gradients()[0], 1);
}

TEST(TapeMisuse, RejectsCheckpointsOfAnotherTape) {
  EagerTape<double> tape, other;
  for (EagerTape<double>* each : {&tape, &other})
    for (int i = 0; i < 5; ++i) each->variable(1);
  const auto mine = tape.checkpoint(), foreign = other.checkpoint();
  tape.variable(2);
  expect_misuse([&] { tape.rewind(foreign); }, "checkpoint");
  tape.rewind(mine);
  expect_misuse([&] { tape.rewind(foreign); }, "checkpoint");
}

// Checkpoints are valid after rewinds in any order, if no later rewind went below them.
TEST(TapeMisuse, CheckpointsAreValidUnlessARewindWentBelowThem) {
  struct Taken {
    EagerTape<double>::Checkpoint checkpoint;
    std::size_t recorded;
    bool good = true;
  };
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed, "checkpoints");
    EagerTape<double> tape(2);
    std::vector<Taken> all;
    std::size_t recorded = 0;
    for (int step = 0; step < 200; ++step) {
      if (random.below(3) > 0) {
        const std::size_t n = random.below(4);
        tape.leaves(std::vector<double>(n, 1.0));
        recorded += n;
        all.push_back({tape.checkpoint(), recorded});
        continue;
      }
      if (all.empty()) continue;
      const Taken to = all[random.below(all.size())];
      if (!to.good) {
        expect_misuse([&] { tape.rewind(to.checkpoint); }, "checkpoint");
        continue;
      }
      tape.rewind(to.checkpoint);
      recorded = to.recorded;
      for (Taken& each : all) each.good = each.good && each.recorded <= recorded;
    }
  }
}

TEST(TapeMisuse, RejectsGradientBeforeBackward) {
  EagerTape<double> tape(2);
  const auto start = tape.checkpoint();
  for (int i = 0; i < 3; ++i) {
    const R x = tape.leaves(std::array{1.0, 2.0});
    const V a = tape.variable(3), f = a * x[0];
    expect_misuse([&] { static_cast<void>(a.grad()); }, "backward()");
    expect_misuse([&] { tape.gradients(x); }, "backward()");
    EXPECT_EQ(tape.gradients(tape.parameters())[0], 0);
    EXPECT_EQ(tape.parameters()[1].grad(), 0);
    backward(a);
    EXPECT_EQ(f.grad(), 0);
    EXPECT_EQ(tape.gradients(x)[1], 0);
    const V later = sqr(a);
    const R more = tape.leaves(std::array{1.0});
    expect_misuse([&] { static_cast<void>(tape.gradient(later)); }, "backward()");
    expect_misuse([&] { tape.gradients(more); }, "backward()");
    backward(f);
    EXPECT_EQ(later.grad(), 0);
    EXPECT_EQ(a.grad(), 1);
    tape.rewind(start);
  }
}

double first_lane(double x) { return x; }
template <class Real, std::size_t N>
double first_lane(const Lanes<Real, N>& x) {
  return static_cast<double>(x[0]);
}

// The arrays of a tape move when it grows. leaves() must still copy numbers of the tape itself.
template <class T>
void expect_leaves_of_its_own_numbers() {
  EagerTape<T> tape(1);
  tape.parameter_values()[0] = T(7);
  typename EagerTape<T>::Range x = tape.leaves(std::vector<T>{T(1), T(2), T(3)});
  backward(reduce_mul(x));
  for (int round = 0; round < 12; ++round) {  // 3 * 2^12 numbers
    const auto before = tape.values(x);
    std::vector<T> twice(before.begin(), before.end());
    const typename EagerTape<T>::Range copy = tape.leaves(before);
    for (std::size_t i = 0; i < twice.size(); ++i)
      ASSERT_EQ(first_lane(tape.values(copy)[i]), first_lane(twice[i]));
    twice.insert(twice.end(), twice.begin(), twice.end());
    x = tape.leaves(twice);
    backward(reduce_sum(x));
    const typename EagerTape<T>::Range slopes = tape.leaves(tape.gradients(x));
    for (const T& slope : tape.values(slopes)) ASSERT_EQ(first_lane(slope), 1);
    ASSERT_EQ(first_lane(tape.values(tape.leaves(tape.parameter_values()))[0]), 7);
  }
}
TEST(TapeMisuse, LeavesMayBeNumbersOfTheTape) {
  expect_leaves_of_its_own_numbers<double>();
  expect_leaves_of_its_own_numbers<Lanes<float, 16>>();
}

TEST(TapeMisuse, HandlesBelowEveryRewindStayValid) {
  EagerTape<double> tape(1);
  tape.parameter_values()[0] = 7;
  const R parameters = tape.parameters();
  const V first = tape.variable(1);
  const auto outer = tape.checkpoint();
  for (int i = 0; i < 3; ++i) {
    const V middle = tape.variable(2);
    const auto inner = tape.checkpoint();
    V last;
    for (int j = 0; j < 3; ++j) {
      last = first * middle * parameters[0];
      backward(last);
      EXPECT_EQ(first.grad(), 14);
      EXPECT_EQ(middle.grad(), 7);
      tape.rewind(inner);
    }
    tape.variable(5);
    expect_misuse([&] { sqr(last); }, "rewound");
    tape.rewind(outer);
    tape.variable(5);
    expect_misuse([&] { sqr(middle); }, "rewound");
    expect_misuse([&] { sqr(last); }, "rewound");
    tape.rewind(outer);
    EXPECT_EQ(sqr(first).value(), 1);
  }
}

TEST(TapeMisuse, RejectsDifferentLengths) {
  EagerTape<double> tape(6);
  const R p = tape.parameters();
  const V a = p[0];
  expect_misuse([&] { inner_product(p.subrange(0, 2), p.subrange(0, 3)); }, "inner product of 2 and 3");
  expect_misuse([&] { inner_product_with_bias(p, std::array{p, p}, a); }, "inner product of 6 and 12");
  expect_misuse([&] { inner_product(std::array{a, a}, std::array{a}); }, "inner product of 2 and 1");
  expect_misuse([&] { p.subrange(5, 2); }, "leaves the range");
  expect_misuse([&] { p.subrange(7, 0); }, "leaves the range");
  expect_misuse([&] { p[6]; }, "index 6 of 6");
  std::vector<V> two{a, a}, one{a};
  expect_misuse([&] { softmax(std::span<const V>(two), std::span<V>(one)); },
                "numbers of shares and arguments differ");
  expect_misuse([&] { variance(a); }, "two numbers");
  for (const auto& f : Cases{[&] { reduce_sum(std::vector<V>()); }, [&] { reduce_mean(p.subrange(0, 0)); },
                             [&] { log_sum_exp(std::vector<R>()); }, [&] { reduce_mul(std::vector<R>{R()}); },
                             [&] { variance_biased(std::vector<V>()); },
                             [&] { inner_product(std::vector<V>(), std::vector<V>()); }}) {
    expect_misuse(f, "at least one number");
  }
}

TEST(TapeMisuse, FailedOperationsDoNotChangeTape) {
  EagerTape<double> tape, other;
  const V a = tape.variable(2), b = tape.variable(3), foreign = other.variable(1);
  const V f = a * b;
  expect_misuse([&] { reduce_mul(a, b, foreign); }, "two tapes");
  expect_misuse([&] { f* foreign; }, "two tapes");
  expect_misuse([&] { tape.range(2, [&](std::size_t) { return a; }); }, "one operation");
  const V g = reduce_mul(f, a, b);
  backward(g);
  EXPECT_EQ(a.grad(), 2 * 2 * 9);
  EXPECT_EQ(b.grad(), 2 * 3 * 4);
}

TEST(TapeMisuse, ConstantsHaveNoGradient) {
  EagerTape<double> tape;
  FixedTape<double, 4> fixed;
  expect_misuse([&] { static_cast<void>(tape.constant(1).grad()); }, "constant");
  expect_misuse([&] { static_cast<void>(fixed.constant(1).grad()); }, "constant");
}

}  // namespace
}  // namespace gradwire
