// Compares the results of a network's executor with its naive twin: for both types, every set of kernels, and
// any microbatches and numbers of samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <iomanip>
#include <limits>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "engine/kernels/select.h"
#include "engine/nn/executor.h"
#include "tests/engine/nn/naive_network.h"
#include "tests/engine/nn/network_samples.h"

namespace gradwire {

// The twin's results for samples 0 .. count - 1, each computed alone.
struct Truth {
  Truth(const Network& network, std::span<const double> x, const RandomSamples<double>& samples,
        std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) {
      const Example<double> example = samples[k];
      sample.push_back(naive_loss_and_gradient(network, x, example));
      output.push_back(NaiveNetwork<double, double>(network, x, example).output());
      const std::vector<double> rough = naive_loss_and_gradient<float>(network, x, example).gradient;
      rounding.push_back(std::vector<double>(rough.size()));
      for (std::size_t j = 0; j < rough.size(); ++j)
        rounding.back()[j] = std::abs(rough[j] - sample.back().gradient[j]);
    }
  }

  // Returns the mean over the first `count` samples.
  LossAndGradient mean(std::size_t count) const {
    LossAndGradient result;
    for (std::size_t k = 0; k < count; ++k) result.loss += sample[k].loss / static_cast<double>(count);
    result.gradient = mean(count, [&](std::size_t k) { return std::span(sample[k].gradient); });
    return result;
  }
  std::vector<double> mean_rounding(std::size_t count) const {
    return mean(count, [&](std::size_t k) { return std::span(rounding[k]); });
  }

  std::vector<LossAndGradient> sample;
  std::vector<std::vector<double>> output;
  std::vector<std::vector<double>> rounding;  // error of the gradient in floats

 private:
  template <class Row>
  static std::vector<double> mean(std::size_t count, Row&& row) {
    std::vector<double> result(row(0).size());
    for (std::size_t k = 0; k < count; ++k)
      for (std::size_t j = 0; j < result.size(); ++j) result[j] += row(k)[j] / static_cast<double>(count);
    return result;
  }
};

inline double largest(std::span<const double> x) {
  double most = 0;
  for (const double number : x) most = std::max(most, std::abs(number));
  return most;
}

// Returns the allowed error of a gradient, or of another vector of this network's parameters. Each range of
// parameters that an operation reads has its own bound, so that a layer with small gradients is checked also.
// Errors are relative to `size`. If the true gradient is 0 up to rounding, they are relative to 1/20 of the
// largest gradient. No computation in this type can avoid the error `rounding`.
template <class Real>
std::vector<double> allowed_errors(const Network& network, std::span<const double> size,
                                   std::span<const double> rounding, double tolerance) {
  std::map<std::size_t, std::size_t> ranges;  // first, count
  for (const NetworkOp& op : network.content().ops)
    for (const int i : {0, 1})
      if (op.count[i] > 0) ranges[op.first[i]] = std::max(ranges[op.first[i]], op.count[i]);
  std::vector<double> allowed(size.size(), 1e-300);  // parameters that no operation reads: exactly 0
  for (const auto& [first, count] : ranges) {
    double range = tolerance * (largest(size.subspan(first, count)) + largest(size) / 20);
    if (sizeof(Real) == sizeof(float)) range += 10 * largest(rounding.subspan(first, count));
    for (std::size_t j = first; j < first + count; ++j) allowed[j] = std::max(allowed[j], range);
  }
  return allowed;
}

// Returns "" if `got` is as wanted, else the first difference.
template <class Real>
std::string compare(const Network& network, std::span<const Real> got, std::span<const double> want,
                    std::span<const double> allowed) {
  for (std::size_t j = 0; j < want.size(); ++j) {
    if (std::abs(static_cast<double>(got[j]) - want[j]) <= allowed[j]) continue;
    std::ostringstream text;
    text << std::setprecision(17) << "coordinate " << j << " is " << got[j] << ", not " << want[j]
         << ", and may be off by " << allowed[j] << "; read by operation";
    for (const NetworkOp& op : network.content().ops)
      for (const int i : {0, 1})
        if (j - op.first[i] < op.count[i]) text << ' ' << &op - network.content().ops.data();
    return text.str();
  }
  return "";
}

struct Comparison {
  std::vector<std::size_t> counts = {1, 3, 8};
  std::vector<std::size_t> micro_batches = {0, 1, 4};
  std::uint64_t seed = 1;
  double scale = 1;               // scale of features
  double spread = 1;              // scale of parameters
  double float_tolerance = 2e-5;  // relative
  double double_tolerance = 2e-11;
};

// Compares one executor with the twin. For the values fewer checks would be enough, but each call takes its
// own path through the executor.
template <class Real>
class ExecutorCheck {
 public:
  ExecutorCheck(const Network& network, std::span<const double> x, const Truth& truth, double tolerance)
      : network_(network), x_(x), real_x_(x.begin(), x.end()), truth_(truth), tolerance_(tolerance) {}

  void run(Executor<Real>& executor, const RandomSamples<Real>& samples, std::size_t count) const {
    SCOPED_TRACE(std::string(sizeof(Real) == 4 ? "float, " : "double, ") + executor.kernels().name +
                 " kernels, microbatch " + std::to_string(executor.micro_batch()) + ", " +
                 std::to_string(count) + " samples");
    const LossAndGradient want = truth_.mean(count);
    const double allowed = tolerance_ * std::max(1.0, std::abs(want.loss));

    // The memory is not aligned, and has sentinels around it.
    const std::size_t dim = network_.dim();
    std::vector<Real> memory(dim + 34, std::numeric_limits<Real>::quiet_NaN());
    memory[0] = memory[dim + 1] = memory[dim + 33] = Real(77);
    const std::span<Real> gradient = std::span(memory).subspan(1, dim);
    EXPECT_NEAR(executor.loss_and_gradient(real_x_, count, samples.at(), gradient), want.loss, allowed);
    const std::vector<double> rounding = truth_.mean_rounding(count);
    const auto errors = allowed_errors<Real>(network_, want.gradient, rounding, tolerance_);
    EXPECT_EQ(compare<Real>(network_, gradient, want.gradient, errors), "");
    EXPECT_TRUE(memory[0] == 77 && memory[dim + 1] == 77 && memory[dim + 33] == 77 &&
                std::isnan(memory[dim + 2]));

    EXPECT_NEAR(executor.loss(real_x_, count, samples.at()), want.loss, allowed);
    expect_descent(executor, samples, count, want);
    expect_outputs(executor, samples, count);
  }

 private:
  void expect_descent(Executor<Real>& executor, const RandomSamples<Real>& samples, std::size_t count,
                      const LossAndGradient& want) const {
    const double step = 0.25;
    std::vector<Real> x = real_x_;
    EXPECT_NEAR(executor.descend(x, count, samples.at(), static_cast<Real>(step)), want.loss,
                tolerance_ * std::max(1.0, std::abs(want.loss)));
    std::vector<double> moved(x_.begin(), x_.end()), rounding = truth_.mean_rounding(count);
    for (std::size_t j = 0; j < moved.size(); ++j) {
      moved[j] -= step * want.gradient[j];
      rounding[j] *= step;
    }
    EXPECT_EQ(compare<Real>(network_, x, moved, allowed_errors<Real>(network_, moved, rounding, tolerance_)),
              "")
        << "after a descent step";
  }

  void expect_outputs(Executor<Real>& executor, const RandomSamples<Real>& samples, std::size_t count) const {
    std::size_t next = 0;
    executor.outputs(real_x_, count, samples.at(), [&](std::size_t k, std::span<const Real> outputs) {
      ASSERT_EQ(k, next++);
      const std::vector<double>& want = truth_.output[k];
      ASSERT_EQ(outputs.size(), want.size());
      const double allowed = tolerance_ * (1 + largest(want));
      for (std::size_t j = 0; j < want.size(); ++j)
        if (!(std::abs(static_cast<double>(outputs[j]) - want[j]) <= allowed)) {
          ADD_FAILURE() << "output " << j << " of sample " << k << " is " << outputs[j] << ", not "
                        << want[j];
          break;
        }
    });
    EXPECT_EQ(next, count);
  }

  const Network& network_;
  std::span<const double> x_;
  std::vector<Real> real_x_;
  const Truth& truth_;
  double tolerance_;
};

template <class Real>
void expect_executor_agrees(const Network& network, std::span<const double> x, const Truth& truth,
                            const Comparison& comparison) {
  const std::size_t most = *std::max_element(comparison.counts.begin(), comparison.counts.end());
  const RandomSamples<Real> samples(network, most, comparison.seed, comparison.scale);
  const ExecutorCheck<Real> check(
      network, x, truth, sizeof(Real) == 4 ? comparison.float_tolerance : comparison.double_tolerance);
  for (const Kernels<Real>* kernels : available_kernels<Real>())
    for (const std::size_t micro_batch : comparison.micro_batches) {
      Executor<Real> executor(network, micro_batch, kernels);
      for (const std::size_t count : comparison.counts) check.run(executor, samples, count);
    }
}

// Expects the twin's loss, gradient, descent step and outputs.
inline void expect_agrees(const Network& network, const Comparison& comparison = {}) {
  std::vector<double> x = random_parameters(network, comparison.seed);
  for (double& number : x) number = static_cast<float>(comparison.spread * number);
  const std::size_t most = *std::max_element(comparison.counts.begin(), comparison.counts.end());
  const Truth truth(network, x, RandomSamples<double>(network, most, comparison.seed, comparison.scale),
                    most);
  for (const LossAndGradient& sample : truth.sample)
    ASSERT_TRUE(std::isfinite(sample.loss)) << "the test is wrong";
  expect_executor_agrees<float>(network, x, truth, comparison);
  expect_executor_agrees<double>(network, x, truth, comparison);
}

}  // namespace gradwire
