// Thinning of points that does not change the picture.
#pragma once

#include <vector>

namespace gradwire {

struct Point {
  double x = 0, y = 0;
};

// Keeps at most four points of each pixel column: its first, lowest, highest and last. A line through them
// covers the same pixels (M4: Jugel et al., VLDB 2014). REQUIRES: x does not decrease.
std::vector<Point> thin_out(const std::vector<Point>& points, double column_width);

// Drops points that are within `tolerance` of the line between the remaining ones. Keeps both ends.
std::vector<Point> drop_straight(const std::vector<Point>& points, double tolerance);

}  // namespace gradwire
