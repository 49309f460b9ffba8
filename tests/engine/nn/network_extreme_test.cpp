// Very large, very small and degenerate numbers. Results must be right, and finite if the function is finite.
#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/nn/network_oracle.h"
#include "tests/engine/nn/network_checks.h"
#include "tests/engine/nn/network_zoo.h"

namespace gradwire {
namespace {

template <class Real>
class NetworkExtremes : public ::testing::Test {
 public:
  struct Result {
    double loss;
    std::vector<Real> gradient;
  };

  // Compares a network with its twin. The network maps the features by the unit matrix, and continues with
  // build().
  template <class Build>
  static void expect_scaled(const std::vector<double>& features, Token label, Build&& build,
                            double tolerance) {
    Network net;
    const Tensor x = net.features(features.size());
    const Tensor scaled = affine(net.linear(features.size(), features.size()), x);
    build(net, scaled);
    std::vector<double> point(net.dim());  // the unit matrix; further parameters are 1
    for (std::size_t j = 0; j < features.size(); ++j) point[j * features.size() + j] = 1;
    for (std::size_t j = features.size() * (features.size() + 1); j < net.dim(); ++j) point[j] = 1;
    expect_same(net, point, features, label, tolerance);
  }

  static void expect_same(const Network& net, const std::vector<double>& point,
                          const std::vector<double>& features, Token label, double tolerance) {
    const std::vector<double> targets(features.size(), 0.0);
    const Token labels[] = {label};
    Example<double> example;
    example.features = features, example.labels = labels, example.targets = targets;
    const LossAndGradient want = naive_loss_and_gradient(net, point, example);

    const std::vector<Real> x(point.begin(), point.end()), real_features(features.begin(), features.end()),
        real_targets(targets.size());
    Example<Real> real;
    real.features = real_features, real.labels = labels, real.targets = real_targets;
    for (const Kernels<Real>* kernels : available_kernels<Real>())
      for (const std::size_t count : {1, 5}) {
        SCOPED_TRACE(std::string(kernels->name) + ", " + std::to_string(count) + " samples");
        Executor<Real> executor(net, count, kernels);
        std::vector<Real> gradient(x.size());
        const double loss = executor.loss_and_gradient(
            x, count, [&](std::size_t) { return real; }, gradient);
        ASSERT_TRUE(std::isfinite(loss));
        EXPECT_NEAR(loss, want.loss, tolerance * (1 + std::abs(want.loss)));
        for (std::size_t j = 0; j < x.size(); ++j) {
          ASSERT_TRUE(std::isfinite(gradient[j])) << "coordinate " << j;
          EXPECT_NEAR(gradient[j], want.gradient[j], tolerance * (1 + std::abs(want.gradient[j])))
              << "coordinate " << j;
        }
      }
  }

  static constexpr double kTolerance = sizeof(Real) == sizeof(float) ? 1e-5 : 1e-13;
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NetworkExtremes, Reals);

TYPED_TEST(NetworkExtremes, CrossEntropyAcceptsLargeLogits) {
  for (const double size : {80.0, 300.0, 1e4, 1e30})
    for (const Token label : {0, 1, 2}) {
      SCOPED_TRACE(size);
      const auto loss = [](Network&, const Tensor& x) { cross_entropy(x); };
      this->expect_scaled({size, -size, 0}, label, loss, this->kTolerance);
      this->expect_scaled({-size, -size, -size}, label, loss, this->kTolerance);
      this->expect_scaled({size, size, size}, label, loss, this->kTolerance);
      this->expect_scaled({size, size / 2, size, -size, 1}, label, loss, this->kTolerance);
    }
}

TYPED_TEST(NetworkExtremes, CrossEntropyOfOneClassIsZero) {
  for (const double size : {0.0, -1e4, 1e4})
    this->expect_scaled(
        {size}, 0, [](Network&, const Tensor& x) { cross_entropy(x); }, this->kTolerance);
}

TYPED_TEST(NetworkExtremes, NormOfConstantVectorIsRight) {
  for (const double value : {0.0, 1.0, -3.0, 1e3})
    for (const std::size_t width : {1, 2, 5, 16, 24}) {
      SCOPED_TRACE(std::to_string(value) + ", width " + std::to_string(width));
      // The derivative is gain / sqrt(epsilon) times the rest after cancellation, so rounding grows by the
      // same factor.
      this->expect_scaled(
          std::vector<double>(width, value), 0,
          [&](Network& net, const Tensor& x) {
            const Tensor y = norm(net.layer_norm(width, 1e-2), x);
            mean_squared_error(y);
          },
          this->kTolerance * (1 + std::abs(value)) * 100);
    }
}

TYPED_TEST(NetworkExtremes, NormOfNearlyEqualNumbersIsRight) {
  this->expect_scaled(
      {100, 100.125, 100, 99.875}, 0,
      [](Network& net, const Tensor& x) { mean_squared_error(norm(net.layer_norm(4, 1e-5), x)); },
      this->kTolerance * 100 * 100);
}

TYPED_TEST(NetworkExtremes, SaturatedActivationsAreRight) {
  for (const Activation function :
       {Activation::kTanh, Activation::kRelu, Activation::kSigmoid, Activation::kGelu}) {
    SCOPED_TRACE(static_cast<int>(function));
    const auto loss = [&](Network&, const Tensor& x) { cross_entropy(activation(function, x)); };
    for (const double size : {5.0, 9.0, 20.0, 50.0, 88.0, 89.0, 200.0, 710.0, 1e4, 1e6})
      this->expect_scaled({size, -size, size / 2, -size / 2, 0.25}, 4, loss, this->kTolerance * 10);
  }
}

TYPED_TEST(NetworkExtremes, TinyArgumentsAreRight) {
  for (const Activation function :
       {Activation::kTanh, Activation::kRelu, Activation::kSigmoid, Activation::kGelu}) {
    SCOPED_TRACE(static_cast<int>(function));
    const auto loss = [&](Network&, const Tensor& x) { cross_entropy(activation(function, x)); };
    for (const double size : {1e-3, 1e-5, 1e-10, 1e-30, 1e-37})
      this->expect_scaled({size, -size, size / 2, -size / 3}, 1, loss, this->kTolerance);
  }
}

// The relative error of the outputs is small even near 0.
TYPED_TEST(NetworkExtremes, TanhAndGeluOfTinyArgumentsAreRelativelyAccurate) {
  using Real = TypeParam;
  for (const Activation function : {Activation::kTanh, Activation::kGelu})
    for (const double size : {0.3, 1e-2, 1e-4, 1e-6, 1e-12, 1e-30}) {
      Network net;
      mean_squared_error(activation(function, net.features(2)));
      const std::vector<Real> features = {static_cast<Real>(size), static_cast<Real>(-size)}, targets(2);
      Example<Real> example;
      example.features = features, example.targets = targets;
      for (const Kernels<Real>* kernels : available_kernels<Real>()) {
        Executor<Real> executor(net, 1, kernels);
        executor.outputs(
            {}, 1, [&](std::size_t) { return example; },
            [&](std::size_t, std::span<const Real> y) {
              for (const int i : {0, 1}) {
                const double x = static_cast<double>(features[i]);
                const double want =
                    function == Activation::kTanh
                        ? std::tanh(x)
                        : 0.5 * x *
                              (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
                EXPECT_NEAR(y[i] / want, 1, 8 * std::numeric_limits<Real>::epsilon())
                    << x << ", " << kernels->name;
              }
            });
      }
    }
}

TYPED_TEST(NetworkExtremes, ReluHasZeroDerivativeAtAndBelowZero) {
  this->expect_scaled(
      {0, -0.0, -1, 1, 1e-30}, 2, [](Network&, const Tensor& x) { mean_squared_error(relu(x)); },
      this->kTolerance);
  this->expect_scaled(
      {0, 0, 0}, 2, [](Network&, const Tensor& x) { cross_entropy(relu(x)); }, this->kTolerance);
}

// The first of several nans is the result, and takes the gradient.
TYPED_TEST(NetworkExtremes, MaxPoolOfNanIsNan) {
  using Real = TypeParam;
  const Real nan = std::numeric_limits<Real>::quiet_NaN(), infinity = std::numeric_limits<Real>::infinity();
  const std::vector<std::vector<Real>> squares = {
      {nan, 1, 2, 3}, {1, 2, 3, nan}, {3, nan, infinity, nan}, {nan, nan, nan, nan}, {-infinity, nan, 5, 1}};
  const Index winners[] = {0, 3, 1, 0, 1};
  for (const Kernels<Real>* kernels : available_kernels<Real>())
    for (const Index lanes : {4, 20})
      for (std::size_t k = 0; k < squares.size(); ++k) {
        SCOPED_TRACE(std::string(kernels->name) + ", square " + std::to_string(k));
        const ImageShape shape{1, 2, 2, 1, 1, 1, 2, 0, lanes};
        std::vector<Real> x(4 * lanes + kSlack), y(lanes + kSlack), winner(y), dy(y.size(), 1), dx(x.size());
        for (Index i = 0; i < 4; ++i)
          for (Index l = 0; l < lanes; ++l) x[i * lanes + l] = l % 2 == 0 ? squares[k][i] : Real(i == 2);
        kernels->max_pool_forward(shape, x.data(), winner.data(), y.data());
        kernels->max_pool_backward(shape, dy.data(), winner.data(), false, dx.data());
        for (Index l = 0; l < lanes; ++l) {
          EXPECT_TRUE(l % 2 == 0 ? std::isnan(y[l]) : y[l] == 1);
          for (Index i = 0; i < 4; ++i) EXPECT_EQ(dx[i * lanes + l], i == (l % 2 == 0 ? winners[k] : 2));
        }
      }
}

TYPED_TEST(NetworkExtremes, NanOutputsDoNotScore) {
  using Real = TypeParam;
  struct Two final : Examples<Real> {
    std::vector<Real> features[2] = {{1, 0, 0}, {0, 1, 0}};
    Token label[2] = {0, 0};
    std::size_t size() const override { return 2; }
    Example<Real> operator[](std::size_t k) const override {
      Example<Real> example;
      example.features = features[k], example.labels = {&label[k], 1};
      return example;
    }
  };
  Network net;
  cross_entropy(affine(net.linear(3, 3), net.features(3)));
  NetworkOracle<Real> oracle(net, std::make_unique<Two>(), std::make_unique<Two>());
  std::vector<Real> x(net.dim());
  EXPECT_EQ(oracle.score(x)->correct, 2u);
  for (Real& number : x) number = std::numeric_limits<Real>::quiet_NaN();
  EXPECT_EQ(oracle.score(x)->correct, 0u);
  EXPECT_EQ(oracle.score(x)->tested, 2u);
}

// If the input is scaled by a power of two, every intermediate number is scaled exactly, unless it overflows.
TYPED_TEST(NetworkExtremes, NormAcceptsNumbersWhoseSquaresOverflow) {
  using Real = TypeParam;
  const std::vector<Real> features = {1, Real(-2.5), 3, Real(0.25), -1, Real(0.125)};
  const int highest = std::numeric_limits<Real>::max_exponent - 6;
  for (const double epsilon : {0.0, 1e-5}) {
    Network net;
    const Tensor scaled = affine(net.linear(6, 6, false), net.features(6));
    cross_entropy(norm(net.layer_norm(6, epsilon), scaled));
    std::vector<Real> x(net.dim());
    for (std::size_t j = 0; j < 6; ++j) x[7 * j] = 1, x[36 + j] = Real(1 + j), x[42 + j] = Real(0.5);
    const Token label[] = {3};
    for (const Kernels<Real>* kernels : available_kernels<Real>()) {
      Executor<Real> executor(net, 16, kernels);
      const auto at = [&](int exponent) {
        std::vector<Real> numbers(features);
        for (Real& number : numbers) number = std::ldexp(number, exponent);
        std::pair<double, std::vector<Real>> result{0, std::vector<Real>(x.size())};
        Example<Real> example;
        example.labels = label;
        result.first = executor.loss_and_gradient(
            x, 9,
            [&](std::size_t k) {
              example.features = k == 4 ? std::span<const Real>(numbers) : std::span<const Real>(features);
              return example;
            },
            result.second);
        return result;
      };
      const auto want = at(0);
      for (const int exponent : {highest / 2 - 4, highest / 2, highest / 2 + 3, highest}) {
        SCOPED_TRACE(std::string(kernels->name) + ", times 2^" + std::to_string(exponent));
        const auto got = at(exponent);
        EXPECT_NEAR(got.first, want.first, 3e-5);  // epsilon matters for the small ones
        for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(got.second[j], want.second[j], 3e-5) << j;
      }
    }
  }
}

// A sample that is nan must affect the loss, not later calls.
TYPED_TEST(NetworkExtremes, NanInputGivesNanLoss) {
  using Real = TypeParam;
  const Real nan = std::numeric_limits<Real>::quiet_NaN();
  for (const NamedNetwork& each :
       {NamedNetwork{"regression", zoo_regression()}, NamedNetwork{"image", zoo_image()}}) {
    const RandomSamples<Real> samples(each.network, 3, 1);
    const std::vector<double> point = random_parameters(each.network, 1);
    const std::vector<Real> x(point.begin(), point.end());
    Executor<Real> executor(each.network);
    const double before = executor.loss(x, 3, samples.at());
    std::vector<Real> bad(samples[1].features.size(), nan);
    if (each.name == "image") std::fill(bad.begin() + 3, bad.end(), Real(1));
    const double loss = executor.loss(x, 3, [&](std::size_t k) {
      Example<Real> example = samples[k];
      if (k == 1) example.features = bad;
      return example;
    });
    EXPECT_TRUE(std::isnan(loss)) << each.name;
    EXPECT_EQ(executor.loss(x, 3, samples.at()), before) << "nan stayed in memory";
  }
}

// A label of the wrong length is an error even if the loss does not read labels.
TEST(NetworkScores, RejectLabelsOfWrongLength) {
  struct One final : Examples<double> {
    std::vector<double> features = std::vector<double>(6), targets = features;
    std::vector<Token> labels;
    std::size_t size() const override { return 1; }
    Example<double> operator[](std::size_t) const override {
      Example<double> example;
      example.features = features, example.targets = targets, example.labels = labels;
      return example;
    }
  };
  Network net(2);
  mean_squared_error(affine(net.linear(3, 3), net.features(3)));
  const std::vector<double> x(net.dim());
  for (const std::size_t count : {0, 1, 2, 3, 500}) {
    auto test = std::make_unique<One>();
    test->labels.resize(count);
    NetworkOracle<double> oracle(net, std::make_unique<One>(), std::move(test));
    if (count == 0)
      EXPECT_FALSE(oracle.score(x).has_value());
    else if (count == 2)
      EXPECT_EQ(oracle.score(x)->tested, 2u);
    else
      EXPECT_THROW(oracle.score(x), DataError);
  }
}

}  // namespace
}  // namespace gradwire
