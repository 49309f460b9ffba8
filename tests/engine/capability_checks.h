// Checks of every oracle's optional operations against its own loss_and_gradient().
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <vector>

#include "gradwire/oracle.h"

namespace gradwire {

template <class Real>
bool same_bits(Real a, Real b) {
  return std::memcmp(&a, &b, sizeof(Real)) == 0;
}

// Returns some coordinates of each kind.
inline std::vector<std::vector<std::uint32_t>> some_lists(std::size_t d) {
  std::vector<std::vector<std::uint32_t>> lists(3);
  lists[0] = {static_cast<std::uint32_t>(d / 2)};
  for (std::size_t j = 0; j < d; j += 3) lists[1].push_back(static_cast<std::uint32_t>(j));
  lists[2].resize(d);
  std::iota(lists[2].begin(), lists[2].end(), 0u);
  return lists;
}

// Checks compute() on `wanted`: the bits of the plain gradient there, its loss, and that each coordinate is
// reported once.
template <class Real>
void expect_restricted(Oracle<Real>& oracle, std::span<const Real> x, Batch batch,
                       const Coordinates& wanted) {
  const std::size_t d = oracle.dim();
  std::vector<Real> plain(d), part(d, std::numeric_limits<Real>::quiet_NaN());
  const Real loss = oracle.loss_and_gradient(x, batch, plain);
  std::vector<int> handed(d);
  std::vector<Real> early(d);
  const std::atomic<bool> never = false;
  GradientOptions options{.wanted = wanted, .stop = &never};
  options.finished = [&](CoordinateRange range) {
    ASSERT_LE(range.end, d);
    for (std::size_t j = range.first; j < range.end; ++j) {
      ++handed[j];
      early[j] = part[j];
    }
  };
  const std::optional<Real> got = oracle.compute(x, batch, part, options);
  ASSERT_TRUE(got.has_value());
  EXPECT_TRUE(same_bits(*got, loss)) << *got << ' ' << loss;
  std::size_t wrong = 0, late = 0, handed_wrong = 0;
  wanted.for_runs(d, [&](std::size_t first, std::size_t end) {
    for (std::size_t j = first; j < end; ++j) {
      wrong += !same_bits(part[j], plain[j]);
      late += !same_bits(early[j], plain[j]);
      handed_wrong += handed[j] != 1;
    }
  });
  EXPECT_EQ(wrong, 0u) << "coordinates differ from the plain gradient";
  EXPECT_EQ(late, 0u) << "coordinates were not final when they were reported";
  EXPECT_EQ(handed_wrong, 0u) << "coordinates were not reported exactly once";
  const double cost = oracle.cost(wanted);
  EXPECT_TRUE(cost > 0 && cost <= 1) << cost;
}

// Checks all optional operations at x over `batch`, except random paths. `tolerance` is for sums in another
// order.
template <class Real>
void expect_capabilities(Oracle<Real>& oracle, std::span<const Real> x, Batch batch, double tolerance) {
  const std::size_t d = oracle.dim(), count = batch.empty() ? oracle.sample_count() : batch.size();
  std::vector<Real> plain(d);
  const Real loss = oracle.loss_and_gradient(x, batch, plain);

  expect_restricted<Real>(oracle, x, batch, {});
  for (const std::size_t first : {std::size_t{0}, d / 3, d - 1})
    for (const std::size_t size : {std::size_t{1}, d / 4 + 1, d})
      expect_restricted<Real>(oracle, x, batch, Coordinates::cyclic(first, size, d));
  for (const auto& list : some_lists(d)) expect_restricted<Real>(oracle, x, batch, Coordinates::list(list));
  EXPECT_DOUBLE_EQ(oracle.cost({}), 1);

  const std::atomic<bool> stop = true;
  std::vector<Real> other(d);
  EXPECT_FALSE(oracle.compute(x, batch, other, {.stop = &stop}).has_value());
  EXPECT_THROW(oracle.compute(x, batch, other, {.wanted = Coordinates::range(d, 1)}), std::logic_error);
  EXPECT_THROW(oracle.compute(x, batch, other, {.paths = {.share = 0}}), std::logic_error);
  EXPECT_TRUE(same_bits(oracle.loss(x, batch), loss));

  std::vector<Real> y(x.begin(), x.end()), at_x(d), at_y(d), plain_y(d);
  for (std::size_t j = 0; j < d; ++j) y[j] += Real(0.01) * static_cast<Real>(j % 5);
  const Real loss_y = oracle.loss_and_gradient(y, batch, plain_y);
  const TwoLosses<Real> two = oracle.two_gradients(x, y, batch, at_x, at_y);
  EXPECT_TRUE(same_bits(two.x, loss) && same_bits(two.y, loss_y));
  EXPECT_EQ(std::memcmp(at_x.data(), plain.data(), d * sizeof(Real)), 0);
  EXPECT_EQ(std::memcmp(at_y.data(), plain_y.data(), d * sizeof(Real)), 0);

  std::vector<Real> v(d);
  double derivative = 0, size = 0;
  for (std::size_t j = 0; j < d; ++j) {
    v[j] = static_cast<Real>(static_cast<double>(j * 7 % 11) - 5) / 5;
    const double term = static_cast<double>(plain[j]) * static_cast<double>(v[j]);
    derivative += term;
    size += std::abs(term);
  }
  const Directional<Real> along = oracle.directional(x, v, batch);
  EXPECT_TRUE(same_bits(along.loss, loss));
  EXPECT_NEAR(static_cast<double>(along.derivative), derivative, tolerance * (1e-3 + size));
  EXPECT_THROW(oracle.directional(x, std::span(v).first(d - 1), batch), std::logic_error);

  // Checks the gradients of single samples, and their means after clipping at three bounds. One of the bounds
  // is close to the median norm.
  std::vector<double> norms, losses(count);
  std::vector<std::vector<double>> gradients;
  std::vector<Real> buffer(d), single(d);
  oracle.sample_gradients(x, batch, buffer, [&](std::size_t k, Real sample_loss) {
    EXPECT_EQ(k, gradients.size());
    const std::uint32_t sample = batch.empty() ? static_cast<std::uint32_t>(k) : batch[k];
    EXPECT_TRUE(same_bits(sample_loss, oracle.loss_and_gradient(x, Batch(&sample, 1), single)));
    EXPECT_EQ(std::memcmp(buffer.data(), single.data(), d * sizeof(Real)), 0);
    gradients.emplace_back(buffer.begin(), buffer.end());
    double square = 0;
    for (const double g : gradients.back()) square += g * g;
    norms.push_back(std::sqrt(square));
  });
  ASSERT_EQ(gradients.size(), count);
  std::vector<double> sorted = norms;
  std::sort(sorted.begin(), sorted.end());
  for (const double bound : {sorted[count / 2] * 0.999 + 1e-12, 1e9, 1e-3}) {
    std::vector<double> expected(d);
    double largest = 1e-30;
    for (std::size_t k = 0; k < count; ++k)
      for (std::size_t j = 0; j < d; ++j) {
        expected[j] += std::min(1.0, bound / norms[k]) * gradients[k][j] / static_cast<double>(count);
        largest = std::max(largest, std::abs(expected[j]));
      }
    const Real clipped_loss = oracle.clipped_gradient(x, batch, bound, other);
    EXPECT_NEAR(static_cast<double>(clipped_loss), static_cast<double>(loss),
                tolerance * (1 + std::abs(static_cast<double>(loss))));
    for (std::size_t j = 0; j < d; ++j)
      ASSERT_NEAR(static_cast<double>(other[j]), expected[j], tolerance * largest) << j << " C=" << bound;
  }
  EXPECT_THROW(oracle.clipped_gradient(x, batch, 0, other), std::logic_error);
}

}  // namespace gradwire
