#include "experiments/plot/plot_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "experiments/plot/plot_axis.h"

namespace gradwire {
namespace {

// Lengths are in points: a single panel is as wide as a column of text, two are as wide as a page.
constexpr double kPanelWidth = 290, kPanelHeight = 195;
constexpr double kLeft = 62, kRight = 16, kTop = 10, kBottom = 48;
constexpr double kFont = 11.5, kSmallFont = 10.5;
constexpr double kLegendRow = 17, kLegendLine = 30, kLegendGap = 16;
constexpr double kTickLength = 4, kMinorTickLength = 2.2;
constexpr double kMarker = 3.1;  // half of its width
constexpr double kMarkerSpacing = 48;
constexpr std::string_view kFonts = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

struct Point {
  double x = 0, y = 0;
};

std::string num(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.2f", value);
  std::string s = text.data();
  s.erase(s.find_last_not_of('0') + 1);
  if (s.ends_with('.')) s.pop_back();
  return s == "-0" ? "0" : s;
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

// "^{...}" becomes raised text; the code uses dy because every viewer understands dy.
std::string raise(std::string_view text) {
  const std::size_t at = text.find("^{");
  if (at == std::string_view::npos) return escape(text);
  const std::size_t end = text.find('}', at);
  std::string exponent(text.substr(at + 2, end - at - 2));
  if (exponent.starts_with('-')) exponent.replace(0, 1, "\u2212");
  return escape(text.substr(0, at)) + "<tspan dy=\"-4\" font-size=\"" + num(kSmallFont * 0.75) + "\">" +
         exponent + "</tspan>" + escape(text.substr(end + 1));
}

// The width of text in a sans-serif font; a little too wide rather than too narrow.
double text_width(std::string_view text) {
  double width = 0;
  for (const char c : text) {
    if ((c & 0xC0) == 0x80) continue;  // not the first byte of a character
    const bool narrow = std::string_view("iljtf.,:;'| ()[]/").find(c) != std::string_view::npos;
    const bool wide = std::string_view("mwMW@%").find(c) != std::string_view::npos || (c >= 'A' && c <= 'Z');
    width += kFont * (narrow ? 0.34 : wide ? 0.8 : 0.58);
  }
  return width;
}

std::string marker_shape(std::string_view marker, Point p, std::string_view color) {
  const double m = kMarker;
  const auto polygon = [&](std::initializer_list<Point> corners) {
    std::string points;
    for (const Point& c : corners) points += num(p.x + c.x) + "," + num(p.y + c.y) + " ";
    points.pop_back();
    return "<polygon points=\"" + points + "\"";
  };
  std::string shape;
  if (marker == "o") {
    shape = "<circle cx=\"" + num(p.x) + "\" cy=\"" + num(p.y) + "\" r=\"" + num(m) + "\"";
  } else if (marker == "s") {
    shape = polygon({{-m, -m}, {m, -m}, {m, m}, {-m, m}});
  } else if (marker == "^") {
    shape = polygon({{0, -1.2 * m}, {1.15 * m, 0.9 * m}, {-1.15 * m, 0.9 * m}});
  } else if (marker == "v") {
    shape = polygon({{0, 1.2 * m}, {1.15 * m, -0.9 * m}, {-1.15 * m, -0.9 * m}});
  } else if (marker == "D") {
    shape = polygon({{0, -1.3 * m}, {1.3 * m, 0}, {0, 1.3 * m}, {-1.3 * m, 0}});
  } else if (marker == "P") {
    const double a = 0.4 * m, b = 1.15 * m;
    shape = polygon({{-a, -b},
                     {a, -b},
                     {a, -a},
                     {b, -a},
                     {b, a},
                     {a, a},
                     {a, b},
                     {-a, b},
                     {-a, a},
                     {-b, a},
                     {-b, -a},
                     {-a, -a}});
  } else {
    const double a = 0.5 * m, b = 1.1 * m;
    shape = polygon({{0, -a},
                     {b - a, -b},
                     {b, a - b},
                     {a, 0},
                     {b, b - a},
                     {b - a, b},
                     {0, a},
                     {a - b, b},
                     {-b, b - a},
                     {-a, 0},
                     {-b, a - b},
                     {a - b, -b}});
  }
  return shape + " fill=\"#ffffff\" stroke=\"" + std::string(color) + "\" stroke-width=\"1.3\"/>\n";
}

std::string stroke(const CurveStyle& style) {
  std::string text = "fill=\"none\" stroke=\"" + std::string(style.color) +
                     "\" stroke-width=\"1.7\" stroke-linejoin=\"round\"";
  if (!style.dashes.empty()) text += " stroke-dasharray=\"" + std::string(style.dashes) + "\"";
  return text;
}

std::string line(Point a, Point b, std::string_view attributes) {
  return "<line x1=\"" + num(a.x) + "\" y1=\"" + num(a.y) + "\" x2=\"" + num(b.x) + "\" y2=\"" + num(b.y) +
         "\" " + std::string(attributes) + "/>\n";
}

std::string text_at(Point p, std::string_view anchor, double size, const std::string& content,
                    std::string_view more = "") {
  return "<text x=\"" + num(p.x) + "\" y=\"" + num(p.y) + "\" text-anchor=\"" + std::string(anchor) +
         "\" font-size=\"" + num(size) + "\"" + std::string(more) + ">" + content + "</text>\n";
}

// ---- one curve ----

// Keeps at most four points per pixel column: its first, lowest, highest and last. The picture stays the
// same.
std::vector<Point> thin_out(const std::vector<Point>& points) {
  std::vector<Point> kept;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin, low = begin, high = begin;
    const double column = std::floor(points[begin].x);
    for (; end < points.size() && std::floor(points[end].x) == column; ++end) {
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

std::string draw_line(const std::vector<Point>& points, const CurveStyle& style) {
  if (points.size() < 2) return "";
  std::string path;
  for (const Point& p : points) path += (path.empty() ? "M" : "L") + num(p.x) + " " + num(p.y);
  return "<path d=\"" + path + "\" " + stroke(style) + "/>\n";
}

// Few markers, evenly along x, each curve shifted a little against the others.
std::string draw_markers(const std::vector<Point>& points, const CurveStyle& style, std::size_t curve) {
  if (points.empty()) return "";
  const double left = points.front().x, width = points.back().x - left;
  const auto count = static_cast<std::size_t>(std::clamp(width / kMarkerSpacing, 1.0, 7.0));
  const double shift = std::fmod(0.35 + 0.38 * static_cast<double>(curve), 1.0);
  std::string text;
  for (std::size_t k = 0; k < count; ++k) {
    const double x = left + width * (static_cast<double>(k) + shift) / static_cast<double>(count);
    const auto nearest = std::min_element(points.begin(), points.end(), [&](const Point& a, const Point& b) {
      return std::abs(a.x - x) < std::abs(b.x - x);
    });
    text += marker_shape(style.marker, *nearest, style.color);
  }
  return text;
}

// ---- one panel ----

class PanelPainter {
 public:
  PanelPainter(const Figure& figure, std::size_t panel, Point origin)
      : figure_(figure), panel_(figure.panels[panel]), number_(panel), origin_(origin) {
    std::vector<double> xs, ys;
    for (const PlotCurve& curve : figure.curves) {
      for (const RoundRecord& r : curve.records) {
        const Point p = numbers(r);
        const bool drawn = std::isfinite(p.y) && std::isfinite(p.x) && (!panel_.log_x || p.x > 0);
        if (!drawn) continue;
        xs.push_back(p.x);
        ys.push_back(p.y);
      }
    }
    x_ = Axis::cover(xs, panel_.log_x, 6);
    y_ = Axis::cover(ys, panel_.log_y, 7);
  }

  std::string draw() const {
    const std::string clip = "plot" + std::to_string(number_);
    std::string svg = "<clipPath id=\"" + clip + "\"><rect x=\"" + num(origin_.x) + "\" y=\"" +
                      num(origin_.y) + "\" width=\"" + num(kPanelWidth) + "\" height=\"" + num(kPanelHeight) +
                      "\"/></clipPath>\n";
    svg += grid();
    svg += "<g clip-path=\"url(#" + clip + ")\">\n";
    std::string markers;
    for (std::size_t c = 0; c < figure_.curves.size(); ++c) {
      for (const auto& piece : pieces(figure_.curves[c])) {
        svg += draw_line(thin_out(piece), curve_style(c));
        markers += draw_markers(piece, curve_style(c), c);
      }
    }
    svg += "</g>\n" + frame() + markers + ticks() + labels();
    return svg;
  }

 private:
  Point numbers(const RoundRecord& r) const {
    return {panel_.x->get(r) / panel_.x_unit, panel_.y->get(r) / panel_.y_unit};
  }
  double right() const { return origin_.x + kPanelWidth; }
  double bottom() const { return origin_.y + kPanelHeight; }
  double at_x(double v) const { return origin_.x + kPanelWidth * x_.place(v); }
  double at_y(double v) const { return bottom() - kPanelHeight * y_.place(v); }

  // The points of a curve, in pieces where it has gaps. A value of zero on a logarithmic y axis is drawn at
  // the bottom.
  std::vector<std::vector<Point>> pieces(const PlotCurve& curve) const {
    std::vector<std::vector<Point>> all(1);
    for (const RoundRecord& r : curve.records) {
      const Point p = numbers(r);
      if (!x_.can_draw(p.x)) continue;
      if (y_.can_draw(p.y)) {
        all.back().push_back({at_x(p.x), at_y(p.y)});
      } else if (p.y >= 0 && p.y < y_.low()) {
        all.back().push_back({at_x(p.x), bottom()});
      } else if (!all.back().empty()) {
        all.emplace_back();
      }
    }
    return all;
  }

  std::string grid() const {
    std::string svg = "<g stroke=\"#e4e4e4\" stroke-width=\"0.7\">\n";
    for (const Tick& t : x_.ticks())
      if (!t.label.empty()) svg += line({at_x(t.value), origin_.y}, {at_x(t.value), bottom()}, "");
    for (const Tick& t : y_.ticks())
      if (!t.label.empty()) svg += line({origin_.x, at_y(t.value)}, {right(), at_y(t.value)}, "");
    return svg + "</g>\n";
  }

  std::string frame() const {
    return "<rect x=\"" + num(origin_.x) + "\" y=\"" + num(origin_.y) + "\" width=\"" + num(kPanelWidth) +
           "\" height=\"" + num(kPanelHeight) +
           "\" fill=\"none\" stroke=\"#222222\" stroke-width=\"0.9\"/>\n";
  }

  std::string ticks() const {
    std::string svg = "<g stroke=\"#222222\" stroke-width=\"0.9\">\n", texts;
    for (const Tick& t : x_.ticks()) {
      const double x = at_x(t.value), length = t.label.empty() ? kMinorTickLength : kTickLength;
      svg += line({x, bottom()}, {x, bottom() + length}, "");
      if (!t.label.empty()) texts += text_at({x, bottom() + 16}, "middle", kSmallFont, raise(t.label));
    }
    for (const Tick& t : y_.ticks()) {
      const double y = at_y(t.value), length = t.label.empty() ? kMinorTickLength : kTickLength;
      svg += line({origin_.x - length, y}, {origin_.x, y}, "");
      if (!t.label.empty()) texts += text_at({origin_.x - 7, y + 3.8}, "end", kSmallFont, raise(t.label));
    }
    return svg + "</g>\n" + texts;
  }

  std::string labels() const {
    const auto scaled = [](const std::string& label, const Axis& axis) {
      return axis.exponent() == 0 ? label : label + "  [\u00d710^{" + std::to_string(axis.exponent()) + "}]";
    };
    const double middle = origin_.y + kPanelHeight / 2, x = origin_.x - kLeft + 14;
    return text_at({origin_.x + kPanelWidth / 2, bottom() + 36}, "middle", kFont,
                   raise(scaled(panel_.x_label, x_))) +
           text_at({x, middle}, "middle", kFont, raise(scaled(panel_.y_label, y_)),
                   " transform=\"rotate(-90 " + num(x) + " " + num(middle) + ")\"");
  }

  const Figure& figure_;
  const PlotPanel& panel_;
  std::size_t number_;
  Point origin_;
  Axis x_, y_;
};

// ---- the legend ----

struct LegendItem {
  std::string label;
  Point at;  // its left end, on the base line of its text
};

// Above the panels, in rows, so that it never hides a curve.
std::vector<LegendItem> place_legend(const Figure& figure, double width) {
  std::vector<LegendItem> items;
  double x = kLeft, y = kTop + kFont;
  for (const PlotCurve& curve : figure.curves) {
    const double item = kLegendLine + 6 + text_width(curve.label);
    if (x > kLeft && x + item > width - kRight) {
      x = kLeft;
      y += kLegendRow;
    }
    items.push_back({curve.label, {x, y}});
    x += item + kLegendGap;
  }
  return items;
}

}  // namespace

std::string draw_svg(const Figure& figure) {
  const double slot = kLeft + kPanelWidth + kRight;
  const double width = slot * static_cast<double>(figure.panels.size());
  const std::vector<LegendItem> legend = place_legend(figure, width);
  const double top = legend.empty() ? kTop : legend.back().at.y + 10;
  const double height = top + kPanelHeight + kBottom;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + num(width) + "pt\" height=\"" +
                    num(height) + "pt\" viewBox=\"0 0 " + num(width) + " " + num(height) +
                    "\" font-family=\"" + std::string(kFonts) +
                    "\" fill=\"#111111\">\n<!-- written by gradwire -->\n<rect width=\"100%\" "
                    "height=\"100%\" fill=\"#ffffff\"/>\n";
  for (std::size_t c = 0; c < legend.size(); ++c) {
    const CurveStyle style = curve_style(c);
    const Point a{legend[c].at.x, legend[c].at.y - 4}, b{a.x + kLegendLine, a.y};
    svg += line(a, b, stroke(style)) + marker_shape(style.marker, {(a.x + b.x) / 2, a.y}, style.color);
    svg += text_at({b.x + 6, legend[c].at.y}, "start", kFont, escape(legend[c].label));
  }
  for (std::size_t p = 0; p < figure.panels.size(); ++p)
    svg += PanelPainter(figure, p, {slot * static_cast<double>(p) + kLeft, top}).draw();
  return svg + "</svg>\n";
}

}  // namespace gradwire
