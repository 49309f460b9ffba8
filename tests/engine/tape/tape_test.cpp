#include <array>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "engine/tape/eager_tape.h"
#include "tests/support/count_allocations.h"

namespace gradwire {
namespace {

using V = EagerTape<double>::Var;
using R = EagerTape<double>::Range;

// The graphs of the engine's benchmark, written as by a user, for any kind of tape.
template <class V>
V tiny(V a, V b) {
  V c = a + b;
  V d = a * b + pow3(b);
  V e = c - d;
  V f = sqr(e);
  return f / 2;
}

template <class V>
V small(V a, V b) {
  V c = a + b;
  V d = a * b + pow3(b);
  c += c + 1;
  c += 1 + c - a;
  d += d * 2 + relu(b + a);
  d += 3 * d + relu(b - a);
  V e = c - d;
  V f = sqr(e);
  V g = f / 2;
  g += 10 / f;
  return g;
}

TEST(Tape, FirstExampleWorks) {
  EagerTape<double> tape;
  Var a = tape.variable(-41.0);
  Var b = tape.leaf(2);
  const auto g = tiny(a, b);
  EXPECT_EQ(g.value(), 612.5);
  backward(g);
  EXPECT_EQ(a.grad(), -35);
  EXPECT_EQ(b.grad(), 1050);
  tape.backward(g, 2);
  EXPECT_EQ(tape.gradient(a), -70);
}

TEST(Tape, SmallGraphHasKnownValueAndGradient) {
  EagerTape<double> tape;
  const V a = tape.variable(-4), b = tape.variable(2), g = small(a, b);
  EXPECT_DOUBLE_EQ(g.value(), 24.70408163265306);
  tape.backward(g);
  EXPECT_NEAR(a.grad(), 138.8338192419825, 1e-12);
  EXPECT_NEAR(b.grad(), 645.5772594752186, 1e-12);
}

TEST(Tape, EachLaneIsASeparateGraph) {
  EagerTape<Lanes<double, 8>> lanes;
  EagerTape<double> tape;
  Lanes<double, 8> x, y;
  for (std::size_t i = 0; i < 8; ++i) {
    x[i] = -4 + static_cast<double>(i);
    y[i] = 2.25 - static_cast<double>(i);
  }
  const auto a = lanes.variable(x), b = lanes.variable(y), g = small(a, b);
  backward(g);
  for (std::size_t i = 0; i < 8; ++i) {
    const V p = tape.variable(x[i]), q = tape.variable(y[i]), f = small(p, q);
    backward(f);
    EXPECT_EQ(g.value()[i], f.value());
    EXPECT_EQ(a.grad()[i], p.grad());
    EXPECT_EQ(b.grad()[i], q.grad());
  }
}

TEST(Tape, BranchWithoutInfluenceDoesNotMakeGradientNan) {
  EagerTape<double> tape;
  const V a = tape.variable(0), k = tape.variable(0);
  const V infinite = log(a);  // infinite derivative
  const V f = a * 2 + infinite * 0 + reduce_mul(infinite, k) * 0;
  static_cast<void>(inv(a));
  tape.backward(a * 2);
  EXPECT_EQ(a.grad(), 2);
  tape.backward(f);
  EXPECT_EQ(a.grad(), 2);
}

TEST(Tape, LaneWithoutInfluenceDoesNotBecomeNan) {
  EagerTape<Lanes<double, 8>> tape;
  Lanes<double, 8> choice(0);
  choice[3] = 1;
  const auto a = tape.variable(0);
  backward(sqrt(a) * choice + a);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(a.grad()[i], i == 3 ? std::numeric_limits<double>::infinity() : 1.0);
  }
}

TEST(Tape, BackwardMayRepeatAndStartAnywhere) {
  EagerTape<double> tape;
  const V a = tape.variable(3), b = sqr(a), c = b * a, other = sqr(c);
  for (int i = 0; i < 10; ++i) {
    tape.backward(c);
    EXPECT_EQ(a.grad(), 27);  // computed again, not added
    EXPECT_EQ(b.grad(), 3);
    EXPECT_EQ(c.grad(), 1);
  }
  tape.backward(other);
  EXPECT_EQ(a.grad(), 2 * 27 * 27);
  tape.backward(b, 0.5);
  EXPECT_EQ(a.grad(), 3);
  EXPECT_EQ(c.grad(), 0);
  EXPECT_EQ(other.grad(), 0);
  tape.backward(a);
  EXPECT_EQ(a.grad(), 1);
  EXPECT_EQ(b.grad(), 0);
}

TEST(Tape, SharedSubexpressionsCountOncePerUse) {
  EagerTape<double> tape;
  const V a = tape.variable(1.5);
  V x = a;
  for (int i = 0; i < 60; ++i) {  // 2^60 paths
    x = x * 0.5 + x * 0.5;
    x += x - x;
  }
  tape.backward(x);
  EXPECT_EQ(a.grad(), 1);
}

TEST(Tape, ConstantsTakePartInOperations) {
  EagerTape<double> tape;
  const V a = tape.variable(3), k = tape.constant(5), f = a * k + k;
  EXPECT_EQ(f.value(), 20);
  tape.backward(f);
  EXPECT_EQ(a.grad(), 5);
}

std::vector<double> normals(std::size_t n, std::uint64_t seed) {
  Random random(seed, "tape test");
  std::vector<double> values(n);
  for (double& value : values) value = random.normal();
  return values;
}

// Records f on a tape whose parameters are x. Expects its gradient to match central differences.
void expect_gradient(std::vector<double> x, const std::function<V(EagerTape<double>&)>& f) {
  EagerTape<double> tape(x.size());
  const auto start = tape.checkpoint();
  const auto value_at = [&](const std::vector<double>& point) {
    std::copy(point.begin(), point.end(), tape.parameter_values().begin());
    const double value = f(tape).value();
    tape.rewind(start);
    return value;
  };
  std::copy(x.begin(), x.end(), tape.parameter_values().begin());
  tape.backward(f(tape));
  const std::vector<double> gradient(tape.parameter_gradients().begin(), tape.parameter_gradients().end());
  tape.rewind(start);
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double center = x[j], h = 1e-6;
    x[j] = center + h;
    const double above = value_at(x);
    x[j] = center - h;
    const double below = value_at(x);
    x[j] = center;
    EXPECT_NEAR(gradient[j], (above - below) / (2 * h), 1e-7 * (1 + std::abs(gradient[j]))) << j;
  }
}

struct Reduction {
  std::string name;
  std::function<V(const std::vector<V>&)> scalars;
  std::function<V(const std::vector<R>&)> ranges;
};
#define REDUCTION(name)                                                                                    \
  {                                                                                                        \
#name, [](const std::vector <V>& x) { return name(x); },                                               \
                                                          [](const std::vector <R>& x) { return name(x); } \
  }
const std::vector<Reduction> kReductions = {
    REDUCTION(reduce_sum),
    REDUCTION(reduce_sub),
    REDUCTION(reduce_mul),
    REDUCTION(reduce_mean),
    REDUCTION(reduce_negative_mean),
    REDUCTION(reduce_sum_of_squares),
    REDUCTION(reduce_mean_squares),
    REDUCTION(variance_biased),
    REDUCTION(variance),
    REDUCTION(log_sum_exp),
    {"mean and mean squares",
     [](const std::vector<V>& x) {
       const auto both = reduce_mean_and_mean_squares(x);
       return both.mean * both.mean_squares;
     },
     [](const std::vector<R>& x) {
       const auto both = reduce_mean_and_mean_squares(x);
       return both.mean * both.mean_squares;
     }},
    {"inner product with itself", [](const std::vector<V>& x) { return inner_product(x, x); },
     [](const std::vector<R>& x) { return inner_product(x, x); }}};
#undef REDUCTION

// The sizes are below, at and above 16, the number of running sums.
class TapeRanges : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, TapeRanges, ::testing::Values(2, 3, 15, 16, 17, 50));

TEST_P(TapeRanges, OperationsOnViewsEqualThoseOnScalars) {
  const std::size_t n = GetParam(), cut = n / 3;
  const auto x = normals(n, 3);
  for (const Reduction& reduction : kReductions) {
    std::vector<double> gradient[2];
    double value[2];
    for (const bool ranges : {false, true}) {
      EagerTape<double> tape(n);
      std::copy(x.begin(), x.end(), tape.parameter_values().begin());
      const R p = tape.parameters();
      std::vector<V> one_by_one;
      for (std::size_t i = cut; i < n; ++i) one_by_one.push_back(p[i]);
      for (std::size_t i = 0; i < cut; ++i) one_by_one.push_back(p[i]);
      const std::vector<R> views = {p.subrange(cut, n - cut), p.subrange(n, 0), p.subrange(0, cut)};
      const V f = ranges ? reduction.ranges(views) : reduction.scalars(one_by_one);
      backward(f * 0.5);
      value[ranges] = f.value();
      gradient[ranges].assign(tape.parameter_gradients().begin(), tape.parameter_gradients().end());
    }
    EXPECT_NEAR(value[0], value[1], 1e-12 * (1 + std::abs(value[0]))) << reduction.name;
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(gradient[0][i], gradient[1][i], 1e-12 * (1 + std::abs(gradient[0][i]))) << reduction.name;
    }
  }
}

TEST_P(TapeRanges, InnerProductsAcceptListsWithDifferentCuts) {
  const std::size_t n = GetParam();
  expect_gradient(normals(3 * n + 1, 4), [n](EagerTape<double>& t) {
    const R p = t.parameters();
    const std::vector<R> x = {p.subrange(2 * n, n / 2), p.subrange(n, n - n / 2)};
    V f = inner_product_with_bias(p.subrange(0, n), x, p[3 * n]);
    f += sqr(inner_product(x, std::array{p.subrange(0, n - 1), p.subrange(3 * n, 1)}));
    return f * inner_product(p.subrange(n, n), p.subrange(n, n));
  });
}

TEST_P(TapeRanges, SmallNetworkOfScalarsAndRangesHasRightGradient) {
  const std::size_t n = GetParam();
  const auto data = normals(n, 6);
  expect_gradient(normals(3 * n + 3 + 6 + 2, 5), [&](EagerTape<double>& t) {
    const R p = t.parameters(), x = t.leaves(data);
    std::vector<V> h;
    for (std::size_t j = 0; j < 3; ++j)
      h.push_back(inner_product_with_bias(p.subrange(j * n, n), x, p[3 * n + j]));
    const R z = t.range(3, [&](std::size_t j) { return tanh(h[j]); });
    std::vector<V> y;
    for (std::size_t j = 0; j < 2; ++j)
      y.push_back(inner_product_with_bias(p.subrange(3 * n + 3 + 3 * j, 3), z, p[3 * n + 9 + j]));
    const R logits = t.pack(std::vector<V>{y[0] + 1, y[1], y[0] * y[1]});
    return log_sum_exp(logits) - y[1] + reduce_mul(softmax(logits)) + sqr(softmax(logits)[2]);
  });
}

TEST(TapeRanges, DataHasValuesAndGradients) {
  EagerTape<double> tape;
  const R x = tape.leaves(std::array{1.0, 2.0, 3.0});
  backward(reduce_mul(x) + x[1]);
  EXPECT_EQ(tape.values(x)[2], 3);
  EXPECT_EQ(tape.gradients(x)[0], 6);
  EXPECT_EQ(tape.gradients(x)[1], 4);
  EXPECT_EQ(x[2].grad(), 2);
  backward(x[1]);
  EXPECT_EQ(tape.gradients(x)[0], 0);
  EXPECT_EQ(tape.gradients(x)[1], 1);
}

TEST(TapeRanges, ReductionsWorkOnLanes) {
  EagerTape<Lanes<double, 8>> tape(4);
  EagerTape<double> one(4);
  for (std::size_t k = 0; k < 4; ++k) {
    one.parameter_values()[k] = 0.5 * static_cast<double>(k) - 0.7;
    tape.parameter_values()[k] = one.parameter_values()[k];
  }
  const auto f = [](auto& t) {
    const auto p = t.parameters();
    return variance(p) * inner_product(p, p) + log_sum_exp(p) * reduce_mean(softmax(p)[1], p[0]) +
           reduce_mul(p);
  };
  backward(f(tape));
  backward(f(one));
  for (std::size_t k = 0; k < 4; ++k) {
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_NEAR(tape.parameter_gradients()[k][i], one.parameter_gradients()[k], 1e-13);
  }
}

TEST(Tape, OnlyParameterGradientsAddUpOverSamples) {
  EagerTape<double> tape(1);
  tape.parameter_values()[0] = 3;
  const auto start = tape.checkpoint();
  for (const double sample : {1.0, 2.0}) {
    const V x = tape.variable(sample);
    tape.backward(sqr(x * tape.parameters()[0]), 0.5);
    EXPECT_EQ(x.grad(), 9 * sample);
    tape.rewind(start);
  }
  EXPECT_EQ(tape.parameter_gradients()[0], 3 + 12);
  tape.backward(tape.parameters()[0]);
  EXPECT_EQ(tape.parameter_gradients()[0], 3 + 12 + 1);
  tape.zero_parameter_gradients();
  EXPECT_EQ(tape.parameter_gradients()[0], 0);
}

TEST(Tape, AllocatesNothingAfterFirstRound) {
  EagerTape<double> tape(40);
  const auto start = tape.checkpoint();
  const auto round = [&] {
    V sum = small(tape.variable(-4), tape.variable(2));
    const R p = tape.parameters();
    for (int i = 0; i < 50; ++i) {
      const auto inner = tape.checkpoint();
      sum += inner_product(p.subrange(0, 20), p.subrange(20, 20)) * reduce_mul(p) + log_sum_exp(sum, p[3]);
      if (i % 7 == 3) tape.rewind(inner);
      if (i % 7 == 3) sum = p[0];
    }
    tape.backward(sum);
    tape.rewind(start);
  };
  round();
  const std::size_t before = allocations::count;
  for (int i = 0; i < 10; ++i) round();
  EXPECT_EQ(allocations::count, before);
}

TEST(Tape, ChainOfAMillionRecordsNeedsNoRecursion) {
  EagerTape<double> tape;
  const V a = tape.variable(1);
  V x = a;
  for (int i = 0; i < 500'000; ++i) x = x * 1.000001 + a * 0;
  const std::size_t before = allocations::count;
  tape.backward(x);
  EXPECT_EQ(allocations::count, before);
  EXPECT_NEAR(a.grad(), std::exp(500'000 * std::log(1.000001)), 1e-9);
}

TEST(Tape, TapesOfTwoTypesWorkInTwoThreads) {
  const auto work = [](auto real, double& result) {
    EagerTape<decltype(real)> tape;
    const auto start = tape.checkpoint();
    for (int i = 0; i < 2000; ++i) {
      const auto a = tape.variable(-41), b = tape.variable(2);
      tape.backward(tiny(a, b));
      result += static_cast<double>(b.grad());
      tape.rewind(start);
    }
  };
  double wide = 0, narrow = 0;
  std::thread first([&] { work(double(), wide); }), second([&] { work(float(), narrow); });
  first.join();
  second.join();
  EXPECT_EQ(wide, 2000 * 1050.0);
  EXPECT_EQ(narrow, 2000 * 1050.0);
}

}  // namespace
}  // namespace gradwire
