// Layout of the curves of a panel on the page, in points. SVG and TikZ share it.
#pragma once

#include <vector>

#include "plotting/plot_axis.h"
#include "plotting/plot_figure.h"
#include "plotting/plot_thin.h"

namespace gradwire {

struct Box {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

class PanelLayout {
 public:
  PanelLayout(const PlotPanel& panel, const Box& box);

  const Box& box() const { return box_; }
  const Axis& x() const { return x_; }
  const Axis& y() const { return y_; }
  double at_x(double v) const { return box_.left + box_.width * x_.place(v); }
  double at_y(double v) const { return box_.bottom() - box_.height * y_.place(v); }
  // Inverse of at_x() and at_y().
  double x_at(double x) const { return x_.value((x - box_.left) / box_.width); }
  double y_at(double y) const { return y_.value((box_.bottom() - y) / box_.height); }

  // Returns the points of a curve, split into pieces at its gaps. A zero on a logarithmic y axis is drawn at
  // the bottom.
  std::vector<std::vector<Point>> pieces(const Series& series) const;
  // Returns the outline of the band in pieces: forward along the upper ends, and back along the lower ones.
  // Parts outside the panel are drawn at its edge.
  std::vector<std::vector<Point>> bands(const Series& series, double column_width) const;

 private:
  double edge_y(double v) const;

  Box box_;
  Axis x_, y_;
};

// Tolerance of the thinning that SVG and TikZ share.
inline constexpr double kStraight = 0.07;  // points of the page

}  // namespace gradwire
