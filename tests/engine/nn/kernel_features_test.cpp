// Affine maps of data, sparse and as rows. Each is compared with its naive twin, and both with each other,
// bit for bit.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "base/random.h"
#include "engine/kernels/select.h"
#include "engine/nn/executor.h"
#include "engine/nn/models/mlp.h"

namespace gradwire {
namespace {

constexpr Index kMostSamples = 16;

Index padded(Index n) { return (n + kSlack - 1) / kSlack * kSlack; }

// Samples of `in` features. Each feature is nonzero with probability `density`. Sample 2 has no nonzero.
template <class Real>
struct Data {
  Index in;
  std::vector<std::vector<std::uint32_t>> index;
  std::vector<std::vector<Real>> value;
  std::vector<SparseSample<Real>> sparse;
  Index stride;
  std::vector<Real> rows;

  Data(Index features, Index samples, double density)
      : in(features), index(samples), value(samples), stride(features + 3), rows(samples * stride) {
    Random random(static_cast<std::uint64_t>(features * 100 + samples), "features");
    for (Index s = 0; s < samples; ++s) {
      for (Index k = 0; k < in && s != 2; ++k) {
        if (random.uniform() >= density) continue;
        index[s].push_back(static_cast<std::uint32_t>(k));
        value[s].push_back(static_cast<Real>(random.normal()));
        rows[s * stride + k] = value[s].back();
      }
      sparse.push_back({index[s].data(), value[s].data(), static_cast<Index>(index[s].size())});
    }
  }
  FeatureRows<Real> dense() const { return {rows.data(), stride, in, static_cast<Index>(sparse.size())}; }
};

template <class Real>
std::vector<Real> random_numbers(Index count, std::uint64_t seed) {
  Random random(seed, "numbers");
  std::vector<Real> x(count);
  for (Real& v : x) v = static_cast<Real>(random.normal());
  return x;
}

template <class Real>
class KernelFeatures : public ::testing::Test {
 protected:
  // Returns a b + c. Rounds once if the kernels have a fused multiply-add.
  static Real multiply_add(const Kernels<Real>& kernels, Real a, Real b, Real c) {
    return std::string(kernels.name) == "portable" ? a * b + c : std::fma(a, b, c);
  }

  // Returns what both forward kernels must compute, by naive loops; shape [sample][out].
  static std::vector<Real> forward(const Kernels<Real>& kernels, const std::vector<Real>& x, Index out,
                                   const Data<Real>& data) {
    std::vector<Real> y;
    for (const SparseSample<Real>& s : data.sparse)
      for (Index c = 0; c < out; ++c) {
        Real sum = x[data.in * out + c];
        for (Index k = 0; k < s.count; ++k)
          sum = multiply_add(kernels, s.value[k], x[s.index[k] * out + c], sum);
        y.push_back(sum);
      }
    return y;
  }

  // Adds to dw what both backward kernels must add, by naive loops.
  static void backward(const Kernels<Real>& kernels, const std::vector<Real>& dy, Index dy_stride, Index out,
                       const Data<Real>& data, std::vector<Real>& dw) {
    for (std::size_t s = 0; s < data.sparse.size(); ++s)
      for (Index k = 0; k < data.sparse[s].count; ++k)
        for (Index c = 0; c < out; ++c) {
          Real& g = dw[data.sparse[s].index[k] * out + c];
          g = multiply_add(kernels, data.sparse[s].value[k], dy[s * dy_stride + c], g);
        }
  }

  // Checks weights and bias that end at the end of their memory, so that a sanitizer sees reads beyond it.
  static void check(const Kernels<Real>& kernels, Index out, const Data<Real>& data) {
    const auto samples = static_cast<Index>(data.sparse.size());
    const Index stride = padded(out);
    const std::vector<Real> x = random_numbers<Real>((data.in + 1) * out, 1);
    const std::vector<Real> want = forward(kernels, x, out, data);
    const Real *w = x.data(), *bias = w + data.in * out;
    for (const bool dense : {false, true}) {
      if (dense && out == 1) continue;
      AlignedVector<Real> y(samples * stride, 77);
      if (dense)
        kernels.dense_forward(w, bias, out, data.dense(), y.data(), stride);
      else
        kernels.sparse_forward(w, bias, out, data.sparse.data(), samples, y.data(), stride);
      for (Index s = 0; s < samples; ++s)
        for (Index c = 0; c < out; ++c)
          ASSERT_EQ(y[s * stride + c], want[s * out + c]) << (dense ? "dense " : "sparse ") << s << ", " << c;
    }

    const std::vector<Real> dy = random_numbers<Real>(samples * stride, 2);
    std::vector<Real> sum = x;  // kernels add to the old values; the bias after them stays
    backward(kernels, dy, stride, out, data, sum);
    for (const bool dense : {false, true}) {
      if (dense && out == 1) continue;
      std::vector<Real> dw = x;
      if (dense)
        kernels.dense_backward(dy.data(), stride, out, data.dense(), dw.data());
      else
        kernels.sparse_backward(dy.data(), stride, out, data.sparse.data(), samples, dw.data());
      ASSERT_EQ(dw, sum) << (dense ? "dense" : "sparse");
    }
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(KernelFeatures, Reals);

TYPED_TEST(KernelFeatures, EqualNaiveTwinForEveryWidth) {
  for (Index out = 1; out <= 70; ++out)
    for (const Index samples : {1, 6, 16})
      for (const double density : {0.2, 1.0}) {
        const Data<TypeParam> data(29, samples, density);
        for (const Kernels<TypeParam>* kernels : available_kernels<TypeParam>()) {
          SCOPED_TRACE(std::string(kernels->name) + ", out " + std::to_string(out) + ", samples " +
                       std::to_string(samples) + ", density " + std::to_string(density));
          this->check(*kernels, out, data);
          if (this->HasFatalFailure()) return;
        }
      }
}

TYPED_TEST(KernelFeatures, EqualNaiveTwinForEveryNumberOfSamplesFeaturesAndZeros) {
  for (Index samples = 1; samples <= kMostSamples; ++samples)
    for (const Index in : {1, 13, 257})
      for (const double density : {0.0, 0.03, 0.5, 1.0}) {
        const Data<TypeParam> data(in, samples, density);
        for (const Kernels<TypeParam>* kernels : available_kernels<TypeParam>())
          for (const Index out : {1, 2, 10, 33}) {
            SCOPED_TRACE(std::string(kernels->name) + ", out " + std::to_string(out) + ", in " +
                         std::to_string(in) + ", samples " + std::to_string(samples) + ", density " +
                         std::to_string(density));
            this->check(*kernels, out, data);
            if (this->HasFatalFailure()) return;
          }
      }
}

// ---- through an executor, which chooses the kernel ----

template <class Real>
struct Features {
  std::vector<std::uint32_t> index;
  std::vector<Real> value;
  Token label;
};

// Returns samples in which about a fifth of the features are nonzero. `shares` holds, in turn for each
// sample, the share of the other features that are stored as zeros. The executor computes microbatches with
// share 0 as sparse samples, and with share 1 as rows.
template <class Real>
std::vector<Features<Real>> samples_with_zeros(Index in, std::size_t count, std::vector<double> shares) {
  std::vector<Features<Real>> samples;
  for (std::size_t s = 0; s < count; ++s) {
    Random numbers(s, "numbers"), zeros(s, "zeros");
    samples.push_back({{}, {}, static_cast<Token>(numbers.below(3))});
    for (Index k = 0; k < in; ++k) {
      const bool number = numbers.uniform() < 0.2 && s % 7 != 3;
      const Real v = static_cast<Real>(numbers.normal());
      if (zeros.uniform() >= shares[s % shares.size()] && !number) continue;
      samples.back().index.push_back(static_cast<std::uint32_t>(k));
      samples.back().value.push_back(number ? v : Real(0));
    }
  }
  return samples;
}

template <class Real>
struct Results {
  double loss = 0;
  std::vector<Real> gradient, moved, outputs;
  bool operator==(const Results&) const = default;
};

template <class Real>
Results<Real> results_of(Executor<Real>& executor, const std::vector<Features<Real>>& samples) {
  const typename Executor<Real>::ExampleAt at = [&](std::size_t k) {
    Example<Real> e;
    e.index = samples[k].index, e.value = samples[k].value, e.labels = {&samples[k].label, 1};
    return e;
  };
  Results<Real> r;
  r.moved = random_numbers<Real>(static_cast<Index>(executor.dim()), 3);
  r.gradient.assign(executor.dim(), Real(77));
  r.loss = executor.loss_and_gradient(r.moved, samples.size(), at, r.gradient);
  executor.outputs(r.moved, samples.size(), at, [&](std::size_t, std::span<const Real> y) {
    r.outputs.insert(r.outputs.end(), y.begin(), y.end());
  });
  executor.descend(r.moved, samples.size(), at, Real(0.1));
  return r;
}

template <class Real>
class ExecutorFeatures : public ::testing::Test {};
TYPED_TEST_SUITE(ExecutorFeatures, Reals);

TYPED_TEST(ExecutorFeatures, StoredZerosChangeNoBit) {
  using Real = TypeParam;
  constexpr Index kIn = 61;
  for (const std::vector<std::uint32_t>& hidden : {std::vector<std::uint32_t>{}, {10}, {24}, {37, 5}}) {
    const Network network = mlp({kIn, hidden, 3});
    for (const Kernels<Real>* kernels : available_kernels<Real>()) {
      Executor<Real> executor(network, 0, kernels);
      for (const std::size_t count : {1, 2, 3, 16, 17, 20, 50}) {
        SCOPED_TRACE(std::string(kernels->name) + ", " + std::to_string(count) + " samples, hidden layers " +
                     std::to_string(hidden.size()));
        const auto want = results_of(executor, samples_with_zeros<Real>(kIn, count, {0.0}));
        EXPECT_EQ(results_of(executor, samples_with_zeros<Real>(kIn, count, {1.0})), want);
        EXPECT_EQ(results_of(executor, samples_with_zeros<Real>(kIn, count, {0.9, 0.4, 1.0, 0.6})), want);
      }
    }
  }
}

// Features may come in any order and more than once; repeated ones are added up.
TYPED_TEST(ExecutorFeatures, FeaturesMayComeInAnyOrderAndTwice) {
  using Real = TypeParam;
  constexpr Index kIn = 40;
  const Real tolerance = 200 * std::numeric_limits<Real>::epsilon();
  for (const Kernels<Real>* kernels : available_kernels<Real>()) {
    SCOPED_TRACE(kernels->name);
    Executor<Real> executor(mlp({kIn, {6}, 3}), 0, kernels);
    auto samples = samples_with_zeros<Real>(kIn, 20, {1.0});
    const auto want = results_of(executor, samples);
    for (auto& [index, value, label] : samples) {
      std::reverse(index.begin(), index.end());
      std::reverse(value.begin(), value.end());
      index.push_back(index[0]);  // half of the feature, twice
      value[0] /= 2;
      value.push_back(value[0]);
    }
    const auto got = results_of(executor, samples);
    EXPECT_NEAR(got.loss, want.loss, tolerance);
    for (std::size_t j = 0; j < executor.dim(); ++j)
      ASSERT_NEAR(got.gradient[j], want.gradient[j], tolerance) << j;
  }
}

}  // namespace
}  // namespace gradwire
