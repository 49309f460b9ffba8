#include "plotting/plot_svg.h"

#include <algorithm>
#include <cmath>

#include "plotting/plot_panel.h"
#include "plotting/plot_width.h"
#include "plotting/svg_text.h"

namespace gradwire::svg {
namespace {

// Lengths in points, or in units of the drawing if the figure has a given width.
constexpr double kLeft = 62, kRight = 16, kTop = 10, kBottom = 48, kTitle = 16;
constexpr double kLegendRow = 17, kLegendLine = 30, kLegendGap = 16, kLegendText = 6;
constexpr double kTickLength = 4, kMinorTickLength = 2.2;
constexpr double kMarkerSpacing = 48;
constexpr double kLabelLines = 36;  // from the panel to the label below it
constexpr std::string_view kFonts = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

// Largest number of points of all curves of a figure. Above it, the columns of the thinning get wider: with
// so many lines, most are hidden by others.
constexpr std::size_t kMostPoints = 42'000;
constexpr double kWidestColumn = 4;

// Returns the stroke attributes in tenths of a point, as in path_data().
std::string stroke_in_tenths(const CurveStyle& style) {
  std::string text = "stroke=\"" + std::string(style.color) + "\"";
  if (style.dashes.empty()) return text;
  text += " stroke-dasharray=\"";
  for (std::size_t at = 0; at < style.dashes.size();) {
    const std::size_t end = std::min(style.dashes.find(' ', at), style.dashes.size());
    text += (at == 0 ? "" : " ") + num(10 * std::stod(std::string(style.dashes.substr(at, end - at))));
    at = end + 1;
  }
  return text + "\"";
}

std::string marker_path(const std::string& data, const CurveStyle& style) {
  return data.empty() ? ""
                      : "<path d=\"" + data + "\" fill=\"#ffffff\" stroke=\"" + std::string(style.color) +
                            "\" stroke-width=\"1.3\"/>\n";
}

// Returns a few markers, evenly spaced along x and shifted a little for each curve. Curve parts outside the
// panel get none.
std::string markers(const std::vector<Point>& points, const CurveStyle& style, std::size_t curve,
                    const Box& box) {
  if (points.empty()) return "";
  const double left = points.front().x, width = points.back().x - left;
  const auto count = static_cast<std::size_t>(std::clamp(width / kMarkerSpacing, 1.0, 7.0));
  const double shift = std::fmod(0.35 + 0.38 * static_cast<double>(curve), 1.0);
  std::string data;
  for (std::size_t k = 0; k < count; ++k) {
    const double x = left + width * (static_cast<double>(k) + shift) / static_cast<double>(count);
    auto at =
        std::lower_bound(points.begin(), points.end(), x, [](const Point& p, double v) { return p.x < v; });
    if (at == points.end() || (at != points.begin() && x - std::prev(at)->x < at->x - x)) --at;
    if (at->y >= box.top && at->y <= box.bottom()) data += marker_data(style.marker, *at);
  }
  return data;
}

// Draws one panel with its curves. The lines are thinned first, to count their points.
class PanelPainter {
 public:
  PanelPainter(const PlotPanel& panel, std::size_t number, const Box& box)
      : panel_(panel), number_(number), layout_(panel, box) {
    for (const Series& series : panel.series) pieces_.push_back(layout_.pieces(series));
  }

  // Thins the lines. Returns the number of points.
  std::size_t thin(double column_width) {
    column_width_ = column_width;
    lines_.clear();
    std::size_t points = 0;
    for (const auto& pieces : pieces_) {
      lines_.emplace_back();
      for (const auto& piece : pieces) {
        lines_.back().push_back(drop_straight(thin_out(piece, column_width), kStraight));
        points += lines_.back().back().size();
      }
    }
    return points;
  }

  std::string draw() const {
    const Box& box = layout_.box();
    const std::string frame = "x=\"" + num(box.left) + "\" y=\"" + num(box.top) + "\" width=\"" +
                              num(box.width) + "\" height=\"" + num(box.height) + "\"";
    const std::string clip = "plot" + std::to_string(number_);
    std::string svg = "<clipPath id=\"" + clip + "\"><rect " + frame + "/></clipPath>\n" + grid() +
                      "<g clip-path=\"url(#" + clip +
                      ")\"><g transform=\"scale(.1)\" fill=\"none\" "
                      "stroke-width=\"17\" stroke-linejoin=\"round\">\n";
    std::string marks;
    for (std::size_t c = 0; c < lines_.size(); ++c) svg += band(c);
    for (std::size_t c = 0; c < panel_.bounds.size(); ++c) svg += bound(c);
    for (std::size_t c = 0; c < lines_.size(); ++c) {
      const CurveStyle style = curve_style(c);
      std::string data;
      for (const auto& line : lines_[c]) data += path_data(line);
      if (!data.empty()) svg += "<path d=\"" + data + "\" " + stroke_in_tenths(style) + "/>\n";
      std::string own;
      for (const auto& piece : pieces_[c]) own += markers(piece, style, c, box);
      marks += marker_path(own, style);
    }
    return svg + "</g></g>\n<rect " + frame + " fill=\"none\" stroke=\"#222222\" stroke-width=\"0.9\"/>\n" +
           marks + ticks() + labels();
  }

 private:
  std::string band(std::size_t c) const {
    std::string data;
    for (const auto& outline : layout_.bands(panel_.series[c], column_width_)) {
      const std::string piece = path_data(outline);
      if (!piece.empty()) data += piece + "z";
    }
    if (data.empty()) return "";
    return "<path d=\"" + data + "\" fill=\"" + std::string(curve_style(c).color) +
           "\" fill-opacity=\".2\" stroke=\"none\"/>\n";
  }

  std::string bound(std::size_t c) const {
    std::string data;
    for (const auto& piece : layout_.pieces(panel_.bounds[c]))
      data += path_data(drop_straight(thin_out(piece, column_width_), kStraight));
    if (data.empty()) return "";
    return "<path d=\"" + data + "\" stroke=\"" + std::string(curve_style(c).color) +
           "\" stroke-width=\"9\" stroke-dasharray=\"45 35\"/>\n";
  }

  std::string grid() const {
    const Box& box = layout_.box();
    std::string svg = "<g stroke=\"#e4e4e4\" stroke-width=\"0.7\">\n";
    for (const Tick& t : layout_.x().ticks())
      if (!t.label.empty())
        svg += line({layout_.at_x(t.value), box.top}, {layout_.at_x(t.value), box.bottom()}, "");
    for (const Tick& t : layout_.y().ticks())
      if (!t.label.empty())
        svg += line({box.left, layout_.at_y(t.value)}, {box.right(), layout_.at_y(t.value)}, "");
    return svg + "</g>\n";
  }

  std::string ticks() const {
    const Box& box = layout_.box();
    std::string svg = "<g stroke=\"#222222\" stroke-width=\"0.9\">\n", texts;
    for (const Tick& t : layout_.x().ticks()) {
      const double x = layout_.at_x(t.value), length = t.label.empty() ? kMinorTickLength : kTickLength;
      svg += line({x, box.bottom()}, {x, box.bottom() + length}, "");
      if (!t.label.empty()) texts += text_at({x, box.bottom() + 16}, "middle", kSmallFont, raise(t.label));
    }
    for (const Tick& t : layout_.y().ticks()) {
      const double y = layout_.at_y(t.value), length = t.label.empty() ? kMinorTickLength : kTickLength;
      svg += line({box.left - length, y}, {box.left, y}, "");
      if (!t.label.empty()) texts += text_at({box.left - 7, y + 3.8}, "end", kSmallFont, raise(t.label));
    }
    return svg + "</g>\n" + texts;
  }

  std::string labels() const {
    const Box& box = layout_.box();
    const auto scaled = [](const std::string& label, const Axis& axis) {
      return axis.exponent() == 0 ? label : label + "  [\u00d710^{" + std::to_string(axis.exponent()) + "}]";
    };
    const double middle = box.top + box.height / 2, x = box.left - kLeft + 14;
    const std::string title =
        panel_.title.empty() ? ""
                             : text_at({box.left + box.width / 2, box.top - 6}, "middle", kFont,
                                       escape(fit(panel_.title, kFont, box.width)), " font-weight=\"bold\"");
    return title +
           text_at({box.left + box.width / 2, box.bottom() + kLabelLines}, "middle", kFont,
                   raise(scaled(panel_.x_label, layout_.x()))) +
           text_at({x, middle}, "middle", kFont, raise(scaled(panel_.y_label, layout_.y())),
                   " transform=\"rotate(-90 " + num(x) + " " + num(middle) + ")\"");
  }

  const PlotPanel& panel_;
  const std::size_t number_;
  const PanelLayout layout_;
  std::vector<std::vector<std::vector<Point>>> pieces_, lines_;  // by curve
  double column_width_ = 1;
};

// ---- the legend ----

// Legend above the panels, so that it never hides a curve: in a row, or in columns if one row is too short.
class Legend {
 public:
  Legend(const Figure& figure, double width) : figure_(figure) {
    const double room = width - kLeft - kRight;
    double widest = 0, sum = -kLegendGap;
    for (const PlotCurve& curve : figure.curves) {
      labels_.push_back(fit_label(curve.label, kFont, room - kLegendLine - kLegendText));
      widths_.push_back(kLegendLine + kLegendText + text_width(labels_.back(), kFont));
      widest = std::max(widest, widths_.back());
      sum += widths_.back() + kLegendGap;
    }
    columns_ = sum <= room ? labels_.size()
                           : std::max<std::size_t>(
                                 1, static_cast<std::size_t>((room + kLegendGap) / (widest + kLegendGap)));
    if (sum > room) widths_.assign(labels_.size(), widest);
    const std::size_t rows = labels_.empty() ? 0 : (labels_.size() + columns_ - 1) / columns_;
    bottom_ = kTop + static_cast<double>(rows + (figure.note.empty() ? 0 : 1)) * kLegendRow;
  }

  double bottom() const { return bottom_; }

  std::string draw() const {
    std::string svg, lines = "<g transform=\"scale(.1)\" fill=\"none\" stroke-width=\"17\">\n", marks;
    double x = kLeft, y = kTop + kFont;
    for (std::size_t c = 0; c < labels_.size(); ++c) {
      if (c > 0 && c % columns_ == 0) x = kLeft, y += kLegendRow;
      const CurveStyle style = curve_style(c);
      const Point a{x, y - 4}, b{x + kLegendLine, y - 4};
      if (has_band(c))
        lines += "<path d=\"" + path_data({{a.x, a.y - 4}, {b.x, a.y - 4}, {b.x, a.y + 4}, {a.x, a.y + 4}}) +
                 "z\" fill=\"" + std::string(style.color) + "\" fill-opacity=\".2\"/>\n";
      lines += "<path d=\"" + path_data({a, b}) + "\" " + stroke_in_tenths(style) + "/>\n";
      marks += marker_path(marker_data(style.marker, {(a.x + b.x) / 2, a.y}), style);
      svg += text_at({b.x + kLegendText, y}, "start", kFont, escape(labels_[c]));
      x += widths_[c] + kLegendGap;
    }
    if (!figure_.note.empty())
      svg += text_at({kLeft, y + kLegendRow}, "start", kSmallFont, escape(figure_.note), " fill=\"#555555\"");
    return lines + "</g>\n" + marks + svg;
  }

 private:
  bool has_band(std::size_t curve) const {
    return std::any_of(figure_.panels.begin(), figure_.panels.end(),
                       [&](const PlotPanel& p) { return !p.series[curve].low.empty(); });
  }

  const Figure& figure_;
  std::vector<std::string> labels_;
  std::vector<double> widths_;
  std::size_t columns_ = 1;
  double bottom_ = 0;
};

std::string draw(const Figure& figure) {
  const PanelSize size = panel_size(figure, kLeft + kRight);
  const std::size_t count = figure.panels.size(), columns = size.columns;
  const bool titles = std::any_of(figure.panels.begin(), figure.panels.end(),
                                  [](const PlotPanel& p) { return !p.title.empty(); });
  const double title = titles ? kTitle : 0;
  const double slot = kLeft + size.width + kRight, step = title + size.height + kBottom + kTop;
  const double width = slot * static_cast<double>(columns);
  const Legend legend(figure, width);
  const double top = legend.bottom() + kTop + title;
  const double height = top + step * static_cast<double>((count + columns - 1) / columns) - kTop - title;
  std::vector<PanelPainter> panels;
  for (std::size_t p = 0; p < count; ++p)
    panels.emplace_back(figure.panels[p], p,
                        Box{slot * static_cast<double>(p % columns) + kLeft,
                            top + step * static_cast<double>(p / columns), size.width, size.height});
  for (double column_width = 1; column_width <= kWidestColumn; column_width *= 1.25) {
    std::size_t points = 0;
    for (PanelPainter& panel : panels) points += panel.thin(column_width);
    if (points <= kMostPoints) break;
  }
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + num(width * size.scale) +
                    "pt\" height=\"" + num(height * size.scale) + "pt\" viewBox=\"0 0 " + num(width) + " " +
                    num(height) + "\" font-family=\"" + std::string(kFonts) +
                    "\" fill=\"#111111\">\n<!-- written by gradwire -->\n<rect width=\"100%\" "
                    "height=\"100%\" fill=\"#ffffff\"/>\n" +
                    legend.draw();
  for (const PanelPainter& panel : panels) svg += panel.draw();
  return svg + "</svg>\n";
}

}  // namespace
}  // namespace gradwire::svg

std::string gradwire::draw_svg(const Figure& figure) { return svg::draw(figure); }
