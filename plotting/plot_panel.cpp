#include "plotting/plot_panel.h"

#include <algorithm>
#include <cmath>

namespace gradwire {
namespace {

constexpr double kLabelWidth = 48, kLabelHeight = 27;  // points of a panel for each label of its axes
constexpr std::size_t kFewestLabels = 2;

std::size_t labels_in(double length, double of_each) {
  return std::max(kFewestLabels, static_cast<std::size_t>(length / of_each));
}

}  // namespace

PanelLayout::PanelLayout(const PlotPanel& panel, const Box& box) : box_(box) {
  std::vector<double> xs, ys;
  const double highest = highest_shown(panel);
  for (const Series& series : panel.series) {
    for (std::size_t k = 0; k < series.x.size(); ++k) {
      if (!std::isfinite(series.y[k]) || !std::isfinite(series.x[k]) || (panel.log_x && series.x[k] <= 0))
        continue;
      xs.push_back(series.x[k]);
      ys.push_back(std::min(series.y[k], highest));
      if (series.low.empty()) continue;
      ys.push_back(std::min(series.low[k], highest));
      ys.push_back(std::min(series.high[k], highest));
    }
  }
  x_ = Axis::cover(xs, panel.log_x, labels_in(box.width, kLabelWidth));
  y_ = Axis::cover(ys, panel.log_y, labels_in(box.height, kLabelHeight));
}

std::vector<std::vector<Point>> PanelLayout::pieces(const Series& series) const {
  std::vector<std::vector<Point>> all(1);
  for (std::size_t k = 0; k < series.x.size(); ++k) {
    const double x = series.x[k], y = series.y[k];
    if (!x_.can_draw(x)) continue;
    if (y_.can_draw(y)) {
      all.back().push_back({at_x(x), at_y(y)});
    } else if (y >= 0 && y < y_.low()) {
      all.back().push_back({at_x(x), box_.bottom()});
    } else if (!all.back().empty()) {
      all.emplace_back();
    }
  }
  return all;
}

double PanelLayout::edge_y(double v) const {
  if (!(v > y_.low())) return box_.bottom();
  return v < y_.high() ? at_y(v) : box_.top;
}

std::vector<std::vector<Point>> PanelLayout::bands(const Series& series, double column_width) const {
  std::vector<std::vector<Point>> all;
  std::vector<Point> upper, lower;
  const auto finish = [&] {
    if (upper.size() > 1) {
      std::vector<Point> outline = drop_straight(thin_out(upper, column_width), kStraight);
      const std::vector<Point> back = drop_straight(thin_out(lower, column_width), kStraight);
      outline.insert(outline.end(), back.rbegin(), back.rend());
      all.push_back(std::move(outline));
    }
    upper.clear();
    lower.clear();
  };
  for (std::size_t k = 0; k < series.low.size(); ++k) {
    if (!x_.can_draw(series.x[k])) continue;
    if (std::isnan(series.low[k]) || std::isnan(series.high[k]) || !std::isfinite(series.low[k])) {
      finish();
      continue;
    }
    upper.push_back({at_x(series.x[k]), edge_y(series.high[k])});
    lower.push_back({at_x(series.x[k]), edge_y(series.low[k])});
  }
  finish();
  return all;
}

}  // namespace gradwire
