// The gradient of the input of an affine map of rows, dx[l][k] (+)= sum_o dy[o][l] w[o][k]: whatever tiles a
// kernel takes for the size, the units are added one after the other, so the bits are those of a plain loop.
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
    const bool fused = std::string(kernels->name) != "baseline";  // SSE2 has no fused multiply-add
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
        << "it wrote behind its end";
  }
}

TEST(RowKernels, AddTheUnitsOfAnInputGradientOneAfterTheOther) {
  for (const Index in : {1, 3, 16, 37, 132})
    for (const Index out : {1, 15, 16, 127, 129})
      for (const Index lanes : {4, 8, 12, 20})
        for (const bool add : {false, true}) {
          expect_input_gradients_of_rows<float>(in, out, lanes, add);
          expect_input_gradients_of_rows<double>(in, out, lanes, add);
        }
  expect_input_gradients_of_rows<float>(1024, 130, 16, true);
}

}  // namespace
}  // namespace gradwire
