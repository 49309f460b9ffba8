#include "engine/tape.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/random.h"
#include "tests/count_allocations.h"

namespace gradwire {
namespace {

using V = Var<double>;

// The graphs of the engine's benchmark, as a user writes them: on any tape.
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

TEST(Tape, TinyGraphHasItsKnownValueAndGradient) {
  Tape<double> tape;
  const V a = tape.leaf(-41), b = tape.leaf(2), g = tiny(a, b);
  EXPECT_EQ(g.value(), 612.5);
  tape.backward(g);
  EXPECT_EQ(tape.gradient(a), -35);
  EXPECT_EQ(tape.gradient(b), 1050);
}

TEST(Tape, SmallGraphHasItsKnownValueAndGradient) {
  Tape<double> tape;
  const V a = tape.leaf(-4), b = tape.leaf(2), g = small(a, b);
  EXPECT_DOUBLE_EQ(g.value(), 24.70408163265306);
  tape.backward(g);
  EXPECT_NEAR(tape.gradient(a), 138.8338192419825, 1e-12);
  EXPECT_NEAR(tape.gradient(b), 645.5772594752186, 1e-12);
}

TEST(Tape, WorksInFloatToo) {
  Tape<float> tape;
  const Var<float> a = tape.leaf(-41), b = tape.leaf(2);
  tape.backward(tiny(a, b));
  EXPECT_EQ(tape.gradient(a), -35);
  EXPECT_EQ(tape.gradient(b), 1050);
}

// Each operation of one or two arguments, its value in plain doubles, and the points to try it at.
struct Operation {
  std::string name;
  std::function<V(V, V)> on_tape;
  std::function<double(double, double)> plain;
  bool positive = false;  // only for positive arguments
};

std::vector<Operation> operations() {
  return {
      {"a+b", [](V a, V b) { return a + b; }, [](double a, double b) { return a + b; }},
      {"a-b", [](V a, V b) { return a - b; }, [](double a, double b) { return a - b; }},
      {"a*b", [](V a, V b) { return a * b; }, [](double a, double b) { return a * b; }},
      {"a/b", [](V a, V b) { return a / b; }, [](double a, double b) { return a / b; }},
      {"a*a", [](V a, V) { return a * a; }, [](double a, double) { return a * a; }},
      {"a-a*b-a", [](V a, V b) { return a - a * b - a; }, [](double a, double b) { return a - a * b - a; }},
      {"a+3", [](V a, V) { return a + 3; }, [](double a, double) { return a + 3; }},
      {"3+a", [](V a, V) { return 3 + a; }, [](double a, double) { return 3 + a; }},
      {"a-3", [](V a, V) { return a - 3; }, [](double a, double) { return a - 3; }},
      {"3-a", [](V a, V) { return 3 - a; }, [](double a, double) { return 3 - a; }},
      {"a*3", [](V a, V) { return a * 3; }, [](double a, double) { return a * 3; }},
      {"3*a", [](V a, V) { return 3 * a; }, [](double a, double) { return 3 * a; }},
      {"a/3", [](V a, V) { return a / 3; }, [](double a, double) { return a / 3; }},
      {"3/a", [](V a, V) { return 3 / a; }, [](double a, double) { return 3 / a; }},
      {"-a", [](V a, V) { return -a; }, [](double a, double) { return -a; }},
      {"+a", [](V a, V) { return +a; }, [](double a, double) { return a; }},
      {"+=b", [](V a, V b) { return a += b; }, [](double a, double b) { return a + b; }},
      {"-=b", [](V a, V b) { return a -= b; }, [](double a, double b) { return a - b; }},
      {"*=b", [](V a, V b) { return a *= b; }, [](double a, double b) { return a * b; }},
      {"/=b", [](V a, V b) { return a /= b; }, [](double a, double b) { return a / b; }},
      {"+=3", [](V a, V) { return a += 3; }, [](double a, double) { return a + 3; }},
      {"-=3", [](V a, V) { return a -= 3; }, [](double a, double) { return a - 3; }},
      {"*=3", [](V a, V) { return a *= 3; }, [](double a, double) { return a * 3; }},
      {"/=3", [](V a, V) { return a /= 3; }, [](double a, double) { return a / 3; }},
      {"relu", [](V a, V b) { return relu(a) * b; }, [](double a, double b) { return std::max(a, 0.0) * b; }},
      {"tanh", [](V a, V) { return tanh(a); }, [](double a, double) { return std::tanh(a); }},
      {"exp", [](V a, V) { return exp(a); }, [](double a, double) { return std::exp(a); }},
      {"sqr", [](V a, V) { return sqr(a); }, [](double a, double) { return a * a; }},
      {"pow3", [](V a, V) { return pow3(a); }, [](double a, double) { return a * a * a; }},
      {"inv", [](V a, V) { return inv(a); }, [](double a, double) { return 1 / a; }},
      {"sigmoid", [](V a, V) { return sigmoid(a); }, [](double a, double) { return 1 / (1 + std::exp(-a)); }},
      {"log", [](V a, V) { return log(a); }, [](double a, double) { return std::log(a); }, true},
      {"sqrt", [](V a, V) { return sqrt(a); }, [](double a, double) { return std::sqrt(a); }, true},
  };
}

TEST(Tape, EveryScalarOperationMatchesFiniteDifferencesAtSeveralPoints) {
  Tape<double> tape;
  const auto start = tape.checkpoint();
  for (const Operation& op : operations()) {
    for (const double x : {-2.3, -0.4, 0.3, 1.7, 4.1}) {
      for (const double y : {-1.9, 0.6, 3.2}) {
        if (op.positive && x < 0) continue;
        const V a = tape.leaf(x), b = tape.leaf(y), f = op.on_tape(a, b);
        EXPECT_NEAR(f.value(), op.plain(x, y), 1e-15 * (1 + std::abs(op.plain(x, y)))) << op.name;
        tape.backward(f);
        const double h = 1e-6;
        const double da = (op.plain(x + h, y) - op.plain(x - h, y)) / (2 * h);
        const double db = (op.plain(x, y + h) - op.plain(x, y - h)) / (2 * h);
        EXPECT_NEAR(tape.gradient(a), da, 1e-7 * (1 + std::abs(da))) << op.name << " at " << x << ", " << y;
        EXPECT_NEAR(tape.gradient(b), db, 1e-7 * (1 + std::abs(db))) << op.name << " at " << x << ", " << y;
        tape.rewind(start);
      }
    }
  }
}

TEST(Tape, EdgesOfOperations) {
  Tape<double> tape;
  const V zero = tape.leaf(0), far = tape.leaf(-800);
  tape.backward(relu(zero));
  EXPECT_EQ(tape.gradient(zero), 0);
  EXPECT_EQ(sigmoid(far).value(), 0);
  EXPECT_EQ(sigmoid(-far).value(), 1);
  tape.backward(sqrt(zero));
  EXPECT_EQ(tape.gradient(zero), std::numeric_limits<double>::infinity());
}

TEST(Tape, ABranchWithoutInfluenceDoesNotTurnTheGradientIntoNan) {
  Tape<double> tape;
  const V a = tape.leaf(0);
  static_cast<void>(log(a));  // infinite derivative, recorded before the root
  const V f = a * 2;
  static_cast<void>(inv(a));  // and after it
  tape.backward(f);
  EXPECT_EQ(tape.gradient(a), 2);
}

TEST(Tape, BackwardMayBeRepeatedAndStartAnywhere) {
  Tape<double> tape;
  const V a = tape.leaf(3), b = sqr(a), c = b * a;
  tape.backward(c);
  EXPECT_EQ(tape.gradient(a), 27);
  tape.backward(c);
  EXPECT_EQ(tape.gradient(a), 27);  // afresh, not added
  tape.backward(b, 0.5);
  EXPECT_EQ(tape.gradient(a), 3);
  EXPECT_EQ(tape.gradient(c), 0);
  tape.backward(a);
  EXPECT_EQ(tape.gradient(a), 1);
}

TEST(Tape, ConstantsTakePartWithoutAGradient) {
  Tape<double> tape;
  const V a = tape.leaf(3), k = tape.constant(5), f = a * k + k;
  EXPECT_EQ(f.value(), 20);
  tape.backward(f);
  EXPECT_EQ(tape.gradient(a), 5);
  EXPECT_THROW(tape.gradient(k), std::logic_error);
}

std::vector<double> normals(std::size_t n, std::uint64_t seed) {
  Random random(seed, "tape test");
  std::vector<double> values(n);
  for (double& value : values) value = random.normal();
  return values;
}

// f of a tape whose parameters are x; expects its gradient to match central differences.
void expect_gradient(std::vector<double> x, const std::function<V(Tape<double>&)>& f) {
  Tape<double> tape(x.size());
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

// Sizes around the unrolling of the kernels.
class TapeVectors : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, TapeVectors, testing::Values(1, 2, 3, 4, 5, 8, 15, 16, 17, 33));

TEST_P(TapeVectors, AffineOfAnInputEqualsTheNaiveProduct) {
  const std::size_t in = GetParam(), out = 19 - GetParam() % 7;
  const auto x = normals(in * out + out + in, 1);
  Tape<double> tape(x.size());
  std::copy(x.begin(), x.end(), tape.parameter_values().begin());
  const auto p = tape.parameters();
  const auto y = affine(p.subrange(0, in * out), p.subrange(in * out, out), p.subrange(in * out + out, in));
  const std::vector<double> seeds = normals(out, 2);
  tape.backward(inner_product(y, tape.leaves(seeds)));
  for (std::size_t j = 0; j < out; ++j) {
    double sum = x[in * out + j];
    for (std::size_t k = 0; k < in; ++k) sum += x[k * out + j] * x[in * out + out + k];
    EXPECT_NEAR(tape.values(y)[j], sum, 1e-13);
    EXPECT_NEAR(tape.parameter_gradients()[in * out + j], seeds[j], 1e-15);
    for (std::size_t k = 0; k < in; ++k) {
      EXPECT_NEAR(tape.parameter_gradients()[k * out + j], seeds[j] * x[in * out + out + k], 1e-14);
    }
  }
  for (std::size_t k = 0; k < in; ++k) {
    double sum = 0;
    for (std::size_t j = 0; j < out; ++j) sum += x[k * out + j] * seeds[j];
    EXPECT_NEAR(tape.parameter_gradients()[in * out + out + k], sum, 1e-13);
  }
}

TEST_P(TapeVectors, SparseAffineEqualsTheDenseOne) {
  const std::size_t in = 2 * GetParam(), out = GetParam();
  const auto x = normals(in * out + out, 3);
  const auto values = normals(GetParam(), 4);
  std::vector<std::uint32_t> index;
  std::vector<double> dense(in);
  for (std::uint32_t k = 0; k < GetParam(); ++k) {
    index.push_back(2 * k + k % 2);
    dense[index.back()] = values[k];
  }
  const auto gradient = [&](bool sparse) {
    Tape<double> tape(x.size());
    std::copy(x.begin(), x.end(), tape.parameter_values().begin());
    const auto w = tape.parameters().subrange(0, in * out), b = tape.parameters().subrange(in * out, out);
    const auto y =
        sparse ? affine(w, b, SparseInput<double>{index, values}) : affine(w, b, tape.leaves(dense));
    const V f = softmax_cross_entropy(y, 0);
    tape.backward(f);
    std::vector<double> result(tape.parameter_gradients().begin(), tape.parameter_gradients().end());
    result.push_back(f.value());
    return result;
  };
  const auto sparse = gradient(true), naive = gradient(false);
  for (std::size_t j = 0; j < sparse.size(); ++j) EXPECT_NEAR(sparse[j], naive[j], 1e-15) << j;
}

TEST_P(TapeVectors, VectorOperationsMatchFiniteDifferences) {
  const std::size_t n = GetParam();
  for (const std::uint64_t seed : {5, 6, 7}) {
    const auto x = normals(2 * n, seed);
    expect_gradient(x, [n](Tape<double>& t) {
      return inner_product(tanh(t.parameters().subrange(0, n)), t.parameters().subrange(n, n));
    });
    expect_gradient(x, [n](Tape<double>& t) {
      return inner_product(relu(t.parameters().subrange(0, n)), t.parameters().subrange(n, n));
    });
    expect_gradient(x, [n](Tape<double>& t) { return softmax_cross_entropy(t.parameters(), n); });
    expect_gradient(x, [](Tape<double>& t) { return inner_product(t.parameters(), t.parameters()); });
  }
}

TEST(TapeVectors, ScalarsAndVectorsMixInOneSweep) {
  const auto f = [](Tape<double>& t) {
    const auto p = t.parameters();
    V a = p[0] * p[1] + 2;
    const auto h = tanh(p.subrange(2, 4));
    V b = h[0] * a - sqr(h[3]);
    const std::vector<V> mixed = {a + 1, b, p[5], a};
    const auto packed = t.pack(mixed);
    V c = inner_product(packed, h) + b * 0.5;
    const auto y = affine(p.subrange(6, 8), p.subrange(14, 2), packed);
    return softmax_cross_entropy(y, 1) * c + exp(y[0]);
  };
  for (const std::uint64_t seed : {8, 9, 10}) expect_gradient(normals(16, seed), f);
}

TEST(TapeVectors, InnerProductOfScattredScalars) {
  expect_gradient(normals(4, 11), [](Tape<double>& t) {
    const auto p = t.parameters();
    const std::vector<V> a = {p[0], p[3], p[0] * p[1]}, b = {p[2] + 1, p[3], p[1]};
    return inner_product<double>(a, b);
  });
}

TEST(TapeVectors, CrossEntropyIsStableForHugeLogits) {
  Tape<double> tape;
  const auto z = tape.leaves(std::vector<double>{1000, 0, -1000});
  EXPECT_EQ(softmax_cross_entropy(z, 0).value(), 0);
  const V far = softmax_cross_entropy(z, 2);
  EXPECT_EQ(far.value(), 2000);
  tape.backward(far);
  EXPECT_EQ(tape.gradient(z[0]), 1);
  EXPECT_EQ(tape.gradient(z[2]), -1);
}

TEST(Tape, ParameterGradientsAddUpOverSamplesAndOthersDoNot) {
  Tape<double> tape(1);
  tape.parameter_values()[0] = 3;
  const auto start = tape.checkpoint();
  for (const double sample : {1.0, 2.0}) {
    const V x = tape.leaf(sample);
    tape.backward(sqr(x * tape.parameters()[0]), 0.5);
    EXPECT_EQ(tape.gradient(x), 9 * sample);
    tape.rewind(start);
  }
  EXPECT_EQ(tape.parameter_gradients()[0], 3 + 12);
  tape.zero_parameter_gradients();
  EXPECT_EQ(tape.parameter_gradients()[0], 0);
}

TEST(Tape, NothingIsAllocatedAfterTheFirstRound) {
  Tape<double> tape(40);
  const auto start = tape.checkpoint();
  const auto round = [&] {
    V sum = small(tape.leaf(-4), tape.leaf(2));
    const auto p = tape.parameters();
    for (int i = 0; i < 50; ++i)
      sum += inner_product(tanh(p.subrange(0, 20)), relu(p.subrange(20, 20))) * sum;
    tape.backward(sum);
    tape.rewind(start);
  };
  round();
  const std::size_t before = allocations::count;
  for (int i = 0; i < 10; ++i) round();
  EXPECT_EQ(allocations::count, before);
}

TEST(Tape, LongGraphsNeedNoRecursion) {
  Tape<double> tape;
  const V a = tape.leaf(1);
  V x = a;
  for (int i = 0; i < 300'000; ++i) x = x * 1.000001 + a * 0;
  tape.backward(x);
  EXPECT_NEAR(tape.gradient(a), std::exp(300'000 * std::log(1.000001)), 1e-9);
}

TEST(Tape, TapesOfTwoTypesWorkInTwoThreadsAtOnce) {
  const auto work = [](auto real, double& result) {
    using Real = decltype(real);
    Tape<Real> tape;
    const auto start = tape.checkpoint();
    for (int i = 0; i < 2000; ++i) {
      const auto a = tape.leaf(-41), b = tape.leaf(2);
      tape.backward(tiny(a, b));
      result += static_cast<double>(tape.gradient(b));
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
