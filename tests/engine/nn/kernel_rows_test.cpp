// The gradient of the input of an affine map of rows, dx[l][k] (+)= sum_o dy[o][l] w[o][k]. A kernel may
// choose any tiles, but adds the units one after another, so its bits are those of a plain loop. The same
// holds for one lane, whose weight gradient comes from the same pass, and for the weight gradient of many
// lanes.
#include <cmath>
#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/kernels/select.h"

namespace gradwire {
namespace {

template <class Real>
std::vector<Real> normal_numbers(std::size_t count, const char* name) {
  Random random(1, name);
  std::vector<Real> numbers(count);
  for (Real& number : numbers) number = static_cast<Real>(random.normal());
  return numbers;
}

template <class Real>
void expect_input_gradients_of_rows(Index in, Index out, Index lanes, bool add) {
  const auto size = [](Index a, Index b) { return static_cast<std::size_t>(a * b + kSlack); };
  const std::vector<Real> w = normal_numbers<Real>(size(out, in), "w"),
                          dy = normal_numbers<Real>(size(out, lanes), "dy"),
                          before = normal_numbers<Real>(size(lanes, in), "dx");
  for (const Kernels<Real>* kernels : available_kernels<Real>()) {
    SCOPED_TRACE(std::string(kernels->name) + ", " + std::to_string(in) + " to " + std::to_string(out) +
                 ", " + std::to_string(lanes) + " lanes" + (add ? ", added" : ""));
    const bool fused = std::string(kernels->name) != "portable";  // SSE2 has no fused multiply-add
    std::vector<Real> got = before;
    kernels->row_backward({w.data(), nullptr, out, in, before.data(), lanes}, dy.data(), add, got.data());
    std::size_t wrong = 0;
    for (Index l = 0; l < lanes; ++l)
      for (Index k = 0; k < in; ++k) {
        const auto at = static_cast<std::size_t>(l * in + k);
        Real sum = add ? before[at] : Real(0);
        for (Index o = 0; o < out; ++o) {
          const Real slope = dy[static_cast<std::size_t>(o * lanes + l)],
                     weight = w[static_cast<std::size_t>(o * in + k)];
          sum = fused ? std::fma(slope, weight, sum) : sum + slope * weight;
        }
        wrong += std::memcmp(&got[at], &sum, sizeof(Real)) != 0;
      }
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(std::memcmp(&got[static_cast<std::size_t>(lanes * in)],
                          &before[static_cast<std::size_t>(lanes * in)], kSlack * sizeof(Real)),
              0)
        << "it wrote after its end";
  }
}

enum class WeightGradient { kNone, kAssigned, kAdded, kDescent };

template <class Real>
void expect_gradients_of_one_lane(Index in, Index out, WeightGradient kind, bool add) {
  const auto size = [](Index n) { return static_cast<std::size_t>(n + kSlack); };
  const std::vector<Real> w = normal_numbers<Real>(size(out * in), "w"),
                          dy = normal_numbers<Real>(size(out), "dy"), x = normal_numbers<Real>(size(in), "x"),
                          input = normal_numbers<Real>(size(in), "dx"),
                          sum = normal_numbers<Real>(size(out * in), "dw");
  for (const Kernels<Real>* kernels : available_kernels<Real>()) {
    SCOPED_TRACE(std::string(kernels->name) + ", " + std::to_string(in) + " to " + std::to_string(out) +
                 ", weight gradient " + std::to_string(static_cast<int>(kind)) + (add ? ", added" : ""));
    const bool fused = std::string(kernels->name) != "portable";
    const auto multiply_add = [&](Real a, Real b, Real c) { return fused ? std::fma(a, b, c) : a * b + c; };
    std::vector<Real> dx = input, dw = kind == WeightGradient::kDescent ? w : sum, dx_twin = input,
                      dw_twin = dw;
    const Real* weights = kind == WeightGradient::kDescent ? dw.data() : w.data();
    kernels->single_backward({weights, nullptr, out, in, x.data(), 1}, dy.data(), add, dx.data(),
                             kind == WeightGradient::kAdded,
                             kind == WeightGradient::kNone ? nullptr : dw.data());
    for (Index o = 0; o < out; ++o)
      for (Index k = 0; k < in; ++k) {
        const auto at = static_cast<std::size_t>(o * in + k), column = static_cast<std::size_t>(k);
        const Real slope = dy[static_cast<std::size_t>(o)];
        dx_twin[column] = multiply_add(slope, w[at], add || o > 0 ? dx_twin[column] : Real(0));
        if (kind == WeightGradient::kAssigned) dw_twin[at] = slope * x[column];
        if (kind == WeightGradient::kAdded || kind == WeightGradient::kDescent)
          dw_twin[at] = multiply_add(slope, x[column], dw_twin[at]);
      }
    EXPECT_EQ(std::memcmp(dx.data(), dx_twin.data(), dx.size() * sizeof(Real)), 0);
    EXPECT_EQ(std::memcmp(dw.data(), dw_twin.data(), dw.size() * sizeof(Real)), 0);
  }
}

// Checks dw[o][k] (+)= sum_l dy[o][l] x[l][k]. The lanes are added one after another.
template <class Real>
void expect_weight_gradients(Index in, Index out, Index lanes, bool add) {
  const auto size = [](Index a, Index b) { return static_cast<std::size_t>(a * b + kSlack); };
  const std::vector<Real> x = normal_numbers<Real>(size(lanes, in), "x"),
                          dy = normal_numbers<Real>(size(out, lanes), "dy"),
                          before = normal_numbers<Real>(size(out, in), "dw");
  for (const Kernels<Real>* kernels : available_kernels<Real>()) {
    SCOPED_TRACE(std::string(kernels->name) + ", " + std::to_string(in) + " to " + std::to_string(out) +
                 ", " + std::to_string(lanes) + " lanes" + (add ? ", added" : ""));
    const bool fused = std::string(kernels->name) != "portable";
    std::vector<Real> dw = before, twin = before;
    kernels->outer(dy.data(), out, lanes, x.data(), in, add, dw.data());
    for (Index o = 0; o < out; ++o)
      for (Index k = 0; k < in; ++k) {
        Real sum = add ? before[static_cast<std::size_t>(o * in + k)] : Real(0);
        for (Index l = 0; l < lanes; ++l) {
          const Real slope = dy[static_cast<std::size_t>(o * lanes + l)],
                     input = x[static_cast<std::size_t>(l * in + k)];
          sum = fused ? std::fma(slope, input, sum) : sum + slope * input;
        }
        twin[static_cast<std::size_t>(o * in + k)] = sum;
      }
    EXPECT_EQ(std::memcmp(dw.data(), twin.data(), dw.size() * sizeof(Real)), 0);
  }
}

TEST(RowKernels, AddUnitsOfInputGradientsInOrder) {
  for (const Index in : {1, 3, 16, 37, 132})
    for (const Index out : {1, 15, 16, 127, 129})
      for (const Index lanes : {4, 8, 12, 20})
        for (const bool add : {false, true}) {
          expect_input_gradients_of_rows<float>(in, out, lanes, add);
          expect_input_gradients_of_rows<double>(in, out, lanes, add);
        }
  expect_input_gradients_of_rows<float>(1024, 130, 16, true);
}

TEST(RowKernels, AddLanesOfWeightGradientsInOrder) {
  for (const Index in : {1, 3, 4, 8, 12, 16, 24, 28, 37, 40, 56, 61})
    for (const Index out : {1, 2, 7, 8, 13})
      for (const Index lanes : {4, 8, 20})
        for (const bool add : {false, true}) {
          expect_weight_gradients<float>(in, out, lanes, add);
          expect_weight_gradients<double>(in, out, lanes, add);
        }
}

TEST(RowKernels, ComputeBothGradientsOfOneLaneInOnePass) {
  for (const Index in : {1, 3, 4, 16, 37, 132})
    for (const Index out : {1, 2, 3, 4, 9})
      for (const auto kind : {WeightGradient::kNone, WeightGradient::kAssigned, WeightGradient::kAdded,
                              WeightGradient::kDescent})
        for (const bool add : {false, true}) {
          expect_gradients_of_one_lane<float>(in, out, kind, add);
          expect_gradients_of_one_lane<double>(in, out, kind, add);
        }
}

}  // namespace
}  // namespace gradwire
