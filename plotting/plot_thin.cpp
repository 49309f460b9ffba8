#include "plotting/plot_thin.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace gradwire {

std::vector<Point> thin_out(const std::vector<Point>& points, double column_width) {
  std::vector<Point> kept;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin, low = begin, high = begin;
    const double column = std::floor(points[begin].x / column_width);
    for (; end < points.size() && std::floor(points[end].x / column_width) == column; ++end) {
      if (points[end].y < points[low].y) low = end;
      if (points[end].y > points[high].y) high = end;
    }
    std::array<std::size_t, 4> picks = {begin, std::min(low, high), std::max(low, high), end - 1};
    for (std::size_t k = 0; k < picks.size(); ++k)
      if (k == 0 || picks[k] != picks[k - 1]) kept.push_back(points[picks[k]]);
    begin = end;
  }
  return kept;
}

// Keeps the range of slopes with which a line from the last kept point passes all later points within
// `tolerance`. A point outside this range ends the piece.
std::vector<Point> drop_straight(const std::vector<Point>& points, double tolerance) {
  if (points.size() < 3) return points;
  constexpr double kAny = std::numeric_limits<double>::infinity();
  std::vector<Point> kept = {points.front()};
  double lowest = -kAny, highest = kAny;
  for (std::size_t k = 1; k < points.size(); ++k) {
    const auto dx = [&] { return points[k].x - kept.back().x; };
    const auto dy = [&] { return points[k].y - kept.back().y; };
    const bool inside = dx() > 0 && dy() >= lowest * dx() && dy() <= highest * dx();
    if (!inside && k > 1 && (points[k - 1].x != kept.back().x || points[k - 1].y != kept.back().y)) {
      kept.push_back(points[k - 1]);
      lowest = -kAny, highest = kAny;
    }
    if (dx() > 0) {
      lowest = std::max(lowest, (dy() - tolerance) / dx());
      highest = std::min(highest, (dy() + tolerance) / dx());
    } else {
      lowest = kAny, highest = -kAny;  // vertical: the next point begins a new piece
    }
  }
  kept.push_back(points.back());
  return kept;
}

}  // namespace gradwire
