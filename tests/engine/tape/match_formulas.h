// Every operation on one kind of tape, compared with plain formulas and their central differences.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "engine/tape/eager_tape.h"
#include "engine/tape/lanes.h"
#include "tests/engine/tape/tape_operations.h"

namespace gradwire::tape_tests {

template <class T>
struct LaneAccess {
  using Real = T;
  static constexpr std::size_t kLanes = 1;
  static double get(const T& x, std::size_t) { return static_cast<double>(x); }
  static void set(T& x, std::size_t, double value) { x = static_cast<T>(value); }
};
template <class R, std::size_t N>
struct LaneAccess<Lanes<R, N>> {
  using Real = R;
  static constexpr std::size_t kLanes = N;
  static double get(const Lanes<R, N>& x, std::size_t i) { return static_cast<double>(x[i]); }
  static void set(Lanes<R, N>& x, std::size_t i, double value) { x[i] = static_cast<R>(value); }
};

inline std::vector<std::array<double, 3>> points(Where where, double nearest) {
  const std::vector<double> all = {-2.25, -0.40625, 0.001953125, 0.3125, 1.6875, 4.125};
  std::vector<std::array<double, 3>> result;
  for (const double a : all) {
    for (const double b : {-1.9375, 0.625, 3.1875}) {
      for (const double c : {-0.71875, 2.375}) {
        if ((where == Where::kAll || a > 0.01) && std::abs(a) >= nearest) result.push_back({a, b, c});
      }
    }
  }
  return result;
}

// Allowed errors, relative to 1 plus the size of the number. Values and derivatives beyond `largest` are left
// out, and also points nearer to 0 than `nearest`: with few bits, 1/a - 1/a + 1 has no right digit there.
struct Within {
  double value, slope;
  double largest = std::numeric_limits<double>::infinity(), nearest = 0;
};

template <class Tape>
void expect_formulas(const Within& within) {
  using T = typename Tape::Value;
  using Access = LaneAccess<T>;
  for (const auto& op : operations<Var<Tape>>()) {
    const auto all = points(op.where, within.nearest);
    for (std::size_t first = 0; first < all.size(); first += Access::kLanes) {
      std::array<T, 3> x{T(0), T(0), T(0)};
      for (std::size_t k = 0; k < 3; ++k) {
        for (std::size_t i = 0; i < Access::kLanes; ++i) {
          Access::set(x[k], i, all[std::min(first + i, all.size() - 1)][k]);
        }
      }
      Tape tape;
      const std::array v{tape.variable(x[0]), tape.variable(x[1]), tape.variable(x[2])};
      const auto f = op.on_tape(v);
      backward(f);
      for (std::size_t i = 0; i < Access::kLanes && first + i < all.size(); ++i) {
        auto p = all[first + i];
        const double value = op.plain(p[0], p[1], p[2]);
        if (std::abs(value) > within.largest) continue;
        EXPECT_NEAR(Access::get(f.value(), i), value, within.value * (1 + std::abs(value))) << op.name;
        for (std::size_t k = 0; k < 3; ++k) {
          const double center = p[k], h = 1e-6 * std::min(1.0, std::abs(center) * 10);
          p[k] = center + h;
          const double above = op.plain(p[0], p[1], p[2]);
          p[k] = center - h;
          const double below = op.plain(p[0], p[1], p[2]);
          p[k] = center;
          const double slope = (above - below) / (2 * h);
          if (std::abs(slope) > within.largest) continue;
          EXPECT_NEAR(Access::get(v[k].grad(), i), slope,
                      within.slope * (1 + std::abs(slope) + std::abs(value)))
              << op.name << " by argument " << k << " at " << p[0] << ", " << p[1] << ", " << p[2];
        }
      }
    }
  }
}

}  // namespace gradwire::tape_tests
