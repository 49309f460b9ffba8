// Fewer points for the same picture.
#pragma once

#include <vector>

namespace gradwire {

struct Point {
  double x = 0, y = 0;
};

// Keeps at most four points of each column of the picture: its first, lowest, highest and last, so that a
// line through the rest covers the same pixels (M4: Jugel et al., VLDB 2014). REQUIRES: x does not fall.
std::vector<Point> thin_out(const std::vector<Point>& points, double column_width);

// Leaves out points that lie within `tolerance` of the line between those that stay; the ends stay.
std::vector<Point> drop_straight(const std::vector<Point>& points, double tolerance);

}  // namespace gradwire
