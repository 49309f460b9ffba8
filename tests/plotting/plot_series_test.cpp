// Numbers of a curve: medians and bands over runs, and thinning.
#include "plotting/plot_series.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "plotting/plot_thin.h"

namespace gradwire {
namespace {

constexpr double kAbove = std::numeric_limits<double>::infinity();
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

TEST(Series, TakesTheMedianOfEachRow) {
  const std::vector<RunSeries> runs = {
      {{0, 1, 2}, {1, 5, 9}}, {{0, 1, 2}, {2, 4, 7}}, {{0, 1, 2}, {3, 6, 8}}};
  const Series s = summarise(runs, Band::kRange, false, false);
  EXPECT_EQ(s.x, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(s.y, (std::vector<double>{2, 5, 8}));
  EXPECT_EQ(s.low, (std::vector<double>{1, 4, 7}));
  EXPECT_EQ(s.high, (std::vector<double>{3, 6, 9}));
}

TEST(Series, InterpolatesQuartilesBetweenTheNearestRuns) {
  std::vector<RunSeries> runs;
  for (const double v : {1.0, 2.0, 3.0, 4.0}) runs.push_back({{0}, {v}});
  const Series s = summarise(runs, Band::kQuartiles, false, false);
  EXPECT_DOUBLE_EQ(s.low[0], 1.75);
  EXPECT_DOUBLE_EQ(s.y[0], 2.5);
  EXPECT_DOUBLE_EQ(s.high[0], 3.25);
}

TEST(Series, InterpolatesBetweenRowsAsTheAxisShowsThem) {
  const std::vector<RunSeries> runs = {{{0, 2}, {1, 1e-4}}, {{0, 1, 2}, {1, 1e-2, 1e-4}}};
  const Series s = summarise(runs, Band::kNone, false, true);
  ASSERT_EQ(s.x, (std::vector<double>{0, 1, 2}));
  EXPECT_NEAR(s.y[1], 1e-2, 1e-14);
  EXPECT_NEAR(summarise(runs, Band::kNone, false, false).y[1], (0.50005 + 0.01) / 2, 1e-14);
}

TEST(Series, EndsOnceHalfOfTheRunsHaveEnded) {
  const std::vector<RunSeries> runs = {
      {{0, 1}, {4, 3}}, {{0, 1, 2}, {4, 2, 2}}, {{0, 1, 2, 3}, {4, 1, 1, 1}}};
  const Series s = summarise(runs, Band::kNone, false, false);
  EXPECT_EQ(s.x, (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(s.y.back(), 2) << "the first run keeps its last value";
}

TEST(Series, PutsDivergedRunsAboveAllOthers) {
  const std::vector<RunSeries> runs = {
      {{0, 1}, {1, kMissing}}, {{0, 1}, {1, 2}}, {{0, 1}, {1, kAbove}}, {{}, {}}};
  const Series s = summarise(runs, Band::kRange, false, true);
  EXPECT_EQ(s.y[1], kAbove);
  EXPECT_NEAR(s.low[1], 2, 1e-15);
}

TEST(Thinning, KeepsFirstLowestHighestAndLastOfEachColumn) {
  std::vector<Point> points;
  for (int k = 0; k < 5000; ++k)
    points.push_back({k / 1000.0, 100 * std::sin(k * 1.7) + (k == 2345 ? 500 : 0)});
  const std::vector<Point> kept = thin_out(points, 1);
  EXPECT_EQ(kept.size(), 20u);
  for (int column = 0; column < 5; ++column) {
    const auto begin = points.begin() + column * 1000, end = begin + 1000;
    const auto by_y = [](const Point& a, const Point& b) { return a.y < b.y; };
    for (const Point& wanted :
         {*begin, *std::min_element(begin, end, by_y), *std::max_element(begin, end, by_y), *(end - 1)}) {
      EXPECT_TRUE(std::any_of(kept.begin(), kept.end(), [&](const Point& p) {
        return p.x == wanted.x && p.y == wanted.y;
      })) << column;
    }
  }
}

TEST(Thinning, DropsOnlyPointsThatLieOnTheLine) {
  std::vector<Point> points;
  for (int k = 0; k < 3000; ++k) {
    const double x = k / 10.0;
    points.push_back({x, 100 * std::exp(-x / 40) + (k % 500 == 0 ? 30 : 0)});
    if (k % 700 == 0) points.push_back({x, 0});  // vertical
  }
  const double tolerance = 0.07;
  const std::vector<Point> kept = drop_straight(points, tolerance);
  EXPECT_LT(kept.size(), 150u);
  EXPECT_EQ(kept.front().y, points.front().y);
  EXPECT_EQ(kept.back().y, points.back().y);
  std::size_t next = 0;  // the first kept point not before the current one
  for (const Point& p : points) {
    if (next < kept.size() && kept[next].x == p.x && kept[next].y == p.y) {
      ++next;
      continue;
    }
    ASSERT_TRUE(next > 0 && next < kept.size());
    const Point a = kept[next - 1], b = kept[next];
    const double on_line = a.y + (p.x - a.x) / (b.x - a.x) * (b.y - a.y);
    EXPECT_NEAR(p.y, on_line, 2 * tolerance) << p.x;
  }
}

}  // namespace
}  // namespace gradwire
