// Products of large layers and many lanes. Each sum adds its terms in ascending order, so the bits are those
// of a plain loop, whatever the tiles, panels and pieces.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/kernels/select.h"
#include "tests/support/sanitized.h"

namespace gradwire {
namespace {

// A matrix in the middle of other numbers: [row][column], or [column][row] if turned. Its first number is at
// no particular address.
template <class Real>
struct Matrix {
  Index stride;
  bool turned;
  std::vector<Real> memory;
  Index first;

  Matrix(Index rows, Index columns, bool is_turned, Random& random)
      : stride((is_turned ? rows : columns) + static_cast<Index>(random.below(4))),
        turned(is_turned),
        memory(static_cast<std::size_t>((is_turned ? columns : rows) * stride + 2 * kSlack)),
        first(static_cast<Index>(random.below(kSlack))) {
    for (Real& number : memory) number = static_cast<Real>(random.normal());
  }
  const Real* data() const { return memory.data() + first; }
  Real& at(Index row, Index column) {
    return memory[static_cast<std::size_t>(first + (turned ? column * stride + row : row * stride + column))];
  }
};

template <class Real>
class WideKernels : public ::testing::Test {
 protected:
  using Limits = std::numeric_limits<Real>;

  // Returns the sum over k of a(r, k) b(k, c) in ascending order, on top of `start`.
  template <class A, class B>
  static Real sum(const Kernels<Real>& kernels, Index depth, Real start, A&& a, B&& b) {
    const bool fused = std::string(kernels.name) != "portable";  // SSE2 has no fused multiply-add
    for (Index k = 0; k < depth; ++k) start = fused ? std::fma(a(k), b(k), start) : start + a(k) * b(k);
    return start;
  }

  // Compares all but the sign of a 0 and the bits of a nan.
  static bool same(Real x, Real y) { return x == y || (std::isnan(x) && std::isnan(y)); }

  // Puts infinite numbers and nan into a few rows.
  static void spoil(Matrix<Real>& matrix, Index rows, Index columns, Random& random) {
    for (const Real number : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()})
      matrix.at(static_cast<Index>(random.below(rows)), static_cast<Index>(random.below(columns))) = number;
  }

  static void expect_outer(Index rows, Index columns, Index lanes, Random& random, bool spoiled = false) {
    const bool a_turned = random.below(2) == 0, b_turned = random.below(2) == 0, add = random.below(2) == 0;
    Matrix<Real> a(rows, lanes, a_turned, random), b(columns, lanes, b_turned, random);
    if (spoiled) spoil(a, rows, lanes, random), spoil(b, columns, lanes, random);
    Matrix<Real> before(1, rows * columns, false, random);
    std::vector<Real> panels(static_cast<std::size_t>(columns * lanes));
    for (const Kernels<Real>* kernels : available_kernels<Real>()) {
      std::vector<Real> got = before.memory;
      Real* dw = got.data() + before.first;
      kernels->lane_outer({a.data(), a.stride, a_turned, rows, b.data(), b.stride, b_turned, columns, lanes,
                           add, dw, panels.data()});
      std::vector<Real> twin = before.memory;
      for (Index r = 0; r < rows; ++r)
        for (Index c = 0; c < columns; ++c) {
          Real& number = twin[static_cast<std::size_t>(before.first + r * columns + c)];
          number = sum(
              *kernels, lanes, add ? number : Real(0), [&](Index l) { return a.at(r, l); },
              [&](Index l) { return b.at(c, l); });
        }
      ASSERT_TRUE(std::equal(got.begin(), got.end(), twin.begin(), same))
          << kernels->name << ", " << rows << " x " << columns << ", " << lanes << " lanes"
          << (add ? ", added" : "") << (a_turned ? ", a turned" : "") << (b_turned ? ", b turned" : "");
    }
  }

  static void expect_product(Index rows, Index depth, Index lanes, Random& random, bool spoiled = false) {
    lanes = (lanes + 3) / 4 * 4;
    const bool transposed = random.below(2) == 0, with_bias = random.below(2) == 0;
    const bool add = random.below(2) == 0 && lanes != 8;  // half a register adds the old value last
    Matrix<Real> w(rows, depth, transposed, random), x(depth, lanes, false, random),
        bias(1, rows, false, random), before(rows, lanes, false, random);
    if (spoiled) spoil(w, rows, depth, random), spoil(x, depth, lanes, random);
    for (const Kernels<Real>* kernels : available_kernels<Real>()) {
      Matrix<Real> got = before, twin = before;
      kernels->lane_product({w.data(), w.stride, transposed, rows, depth, x.data(), x.stride, lanes,
                             with_bias ? bias.data() : nullptr, add, got.memory.data() + got.first,
                             got.stride});
      for (Index r = 0; r < rows; ++r)
        for (Index l = 0; l < lanes; ++l) {
          const Real start = with_bias ? bias.at(0, r) : Real(0);
          twin.at(r, l) = sum(
              *kernels, depth, add ? twin.at(r, l) + start : start, [&](Index k) { return w.at(r, k); },
              [&](Index k) { return x.at(k, l); });
        }
      ASSERT_TRUE(std::equal(got.memory.begin(), got.memory.end(), twin.memory.begin(), same))
          << kernels->name << ", " << rows << " x " << depth << ", " << lanes << " lanes"
          << (add ? ", added" : "") << (transposed ? ", transposed" : "") << (with_bias ? ", bias" : "");
    }
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(WideKernels, Reals);

TYPED_TEST(WideKernels, AddLanesOfWeightGradientsInOrder) {
  Random random(1, "wide kernels");
  for (Index n = 1; n <= 70; ++n)
    for (int turn = 0; turn < 4; ++turn) {
      const auto other = [&] { return static_cast<Index>(1 + random.below(70)); };
      this->expect_outer(n, other(), other(), random);
      this->expect_outer(other(), n, other(), random);
      this->expect_outer(other(), other(), n, random);
    }
}

TYPED_TEST(WideKernels, AddLanesOfLargeWeightGradientsInOrder) {
  Random random(2, "wide kernels");
  for (int k = 0; k < scaled(200); ++k) {
    Index size[3];
    for (Index& each : size) each = static_cast<Index>(1 + random.below(90));
    size[random.below(3)] *= static_cast<Index>(1 + random.below(9));
    this->expect_outer(size[0], size[1], size[2], random, k % 4 == 0);
  }
  this->expect_outer(5, 2100, 300, random);  // several blocks of panels, in two pieces of lanes
}

// Products of few weights take other loops (lane_product.h).
TYPED_TEST(WideKernels, AddTermsOfLargeProductsInOrder) {
  Random random(3, "wide kernels");
  for (int k = 0; k < scaled(200); ++k) {
    const auto rows = static_cast<Index>(20 + random.below(400));
    const auto depth = static_cast<Index>((1 << 16) / rows + 1 + random.below(100));
    this->expect_product(rows, depth, static_cast<Index>(1 + random.below(k % 20 == 0 ? 200 : 70)), random,
                         k % 4 == 0);
  }
  this->expect_product(30, 2300, 68, random);
}

TYPED_TEST(WideKernels, AddTermsOfSmallProductsInOrder) {
  Random random(4, "wide kernels");
  for (Index n = 1; n <= 70; ++n)
    for (int turn = 0; turn < 4; ++turn) {
      const auto other = [&] { return static_cast<Index>(1 + random.below(70)); };
      this->expect_product(n, other(), other(), random);
      this->expect_product(other(), n, other(), random);
      this->expect_product(other(), other(), n, random);
    }
}

}  // namespace
}  // namespace gradwire
