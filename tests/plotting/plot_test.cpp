// Axes, and the content and drawing of figures.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>

#include "plotting/plot_axis.h"
#include "plotting/plot_figure.h"
#include "plotting/plot_script.h"
#include "plotting/plot_svg.h"
#include "plotting/plot_thin.h"
#include "plotting/plot_tikz.h"

namespace gradwire {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> list;
  for (const Tick& t : axis.ticks())
    if (!t.label.empty()) list.push_back(t.label);
  return list;
}

using Labels = std::vector<std::string>;

TEST(Axis, HasTicksAtRoundNumbers) {
  EXPECT_EQ(labels(Axis::cover(std::vector<double>{0, 1000}, false, 6)),
            (Labels{"0", "200", "400", "600", "800", "1000"}));
  EXPECT_EQ(labels(Axis::cover(std::vector<double>{82.3, 97.1}, false, 6)), (Labels{"85", "90", "95"}));
  EXPECT_EQ(labels(Axis::cover(std::vector<double>{-0.2, 0.2}, false, 6)),
            (Labels{"\u22120.2", "\u22120.1", "0.0", "0.1", "0.2"}));
}

TEST(Axis, SharesAnExponentAmongLargeOrSmallNumbers) {
  const Axis large = Axis::cover(std::vector<double>{0, 2.4e7}, false, 6);
  EXPECT_EQ(large.exponent(), 6);
  EXPECT_EQ(labels(large), (Labels{"0", "5", "10", "15", "20"}));
  EXPECT_EQ(Axis::cover(std::vector<double>{0, 3e-5}, false, 6).exponent(), -6);
}

TEST(Axis, CountsInPowersOfTenIfLogarithmic) {
  EXPECT_EQ(labels(Axis::cover(std::vector<double>{1e-12, 1}, true, 7)),
            (Labels{"10^{-12}", "10^{-10}", "10^{-8}", "10^{-6}", "10^{-4}", "10^{-2}", "10^{0}"}));
  EXPECT_EQ(labels(Axis::cover(std::vector<double>{0.01, 100}, true, 7)),
            (Labels{"0.01", "0.1", "1", "10", "100"}));
}

TEST(Axis, HasLabelsOnNarrowLogarithmicRanges) {
  for (const double width : {1.0001, 1.02, 1.3, 2.0, 5.0, 30.0, 90.0})
    for (const double low : {1e-9, 0.3, 0.97, 7e5}) {
      const auto list = labels(Axis::cover(std::vector<double>{low, low * width}, true, 7));
      EXPECT_GE(list.size(), 2u) << low << " x " << width;
      EXPECT_LE(list.size(), 9u) << low << " x " << width;
    }
}

TEST(Axis, HasMinorTicksBetweenLinearLabels) {
  const Axis axis = Axis::cover(std::vector<double>{0, 1000}, false, 6);
  std::size_t minor = 0;
  for (const Tick& t : axis.ticks()) minor += t.label.empty();
  EXPECT_EQ(minor, 5u * 3u);
}

TEST(Axis, FindsTheValueOfAPlace) {
  for (const bool logarithmic : {false, true}) {
    const Axis axis = Axis::cover(std::vector<double>{1e-3, 40}, logarithmic, 6);
    for (const double v : {1e-3, 0.7, 39.0}) EXPECT_NEAR(axis.value(axis.place(v)), v, 1e-12 * v + 1e-14);
  }
}

TEST(Axis, PlacesItsRangeInsideZeroToOne) {
  for (const bool logarithmic : {false, true})
    for (const double low : {1e-290, 1e-3, 5.0}) {
      const Axis axis = Axis::cover(std::vector<double>{low, 40 * low}, logarithmic, 6);
      EXPECT_GE(axis.place(low), 0) << low;
      EXPECT_LT(axis.place(low), 0.1) << low;
      EXPECT_LE(axis.place(40 * low), 1) << low;
      EXPECT_GT(axis.place(40 * low), 0.9) << low;
    }
}

TEST(Axis, AcceptsAnyNumbers) {
  for (const bool logarithmic : {false, true}) {
    for (const std::vector<double>& values : std::vector<std::vector<double>>{{},
                                                                              {0},
                                                                              {0, 0},
                                                                              {-1, -1},
                                                                              {5},
                                                                              {kNan},
                                                                              {kInf, -kInf},
                                                                              {0, kNan, 3},
                                                                              {1e308, -1e308},
                                                                              {5e-324, 1},
                                                                              {5e-324}}) {
      const Axis axis = Axis::cover(values, logarithmic, 6);
      EXPECT_LT(axis.low(), axis.high());
      EXPECT_TRUE(std::isfinite(axis.low()) && std::isfinite(axis.high()));
      EXPECT_LE(axis.ticks().size(), 200u);
      for (const Tick& t : axis.ticks()) EXPECT_TRUE(std::isfinite(axis.place(t.value)));
    }
  }
}

// ---- figures ----

// Runs whose metrics are in memory.
struct Runs {
  std::vector<PlotRun> list;

  using Function = double (*)(double round);
  void add(const std::string& algorithm, std::size_t rounds, double bits, Function grad, int seed = 1) {
    PlotRun run;
    run.folder = "runs/" + algorithm + std::to_string(seed);
    run.keys = {{"name", "\"" + algorithm + std::to_string(seed) + "\""},
                {"seed", std::to_string(seed)},
                {"algorithm.name", "\"" + algorithm + "\""}};
    run.metrics.names = {"round", "loss", "grad_norm_sq", "accuracy", "bits_up", "bytes_up"};
    run.metrics.read = run.metrics.names;
    run.metrics.columns.resize(6);
    run.metrics.rows = rounds + 1;
    for (std::size_t k = 0; k <= rounds; ++k) {
      const double at = static_cast<double>(k), g = grad(at);
      const double row[] = {at, 1 + g, g, kNan, bits * at, 20 * bits / 8 * at};
      for (std::size_t c = 0; c < 6; ++c) run.metrics.columns[c].push_back(row[c]);
    }
    list.push_back(std::move(run));
  }
  std::vector<double>& column(std::size_t run, std::size_t c) { return list[run].metrics.columns[c]; }
  void add_accuracy(std::size_t run) {
    for (std::size_t k = 0; k < column(run, 3).size(); ++k) column(run, 3)[k] = 1 - 0.9 * column(run, 2)[k];
  }
  Figure figure(std::optional<Band> band = std::nullopt) const {
    return make_figure(list, usual_axes(list, nullptr), band);
  }
};
double falling(double k) { return std::exp(-0.1 * k); }

Figure figure_of(const std::string& label, std::size_t rounds, Runs::Function grad) {
  Runs runs;
  runs.add(label, rounds, 64, grad);
  return runs.figure();
}

TEST(Figure, ShowsTheGradientAgainstBitsOnALogarithmicAxis) {
  const Figure f = figure_of("a", 50, falling);
  ASSERT_EQ(f.panels.size(), 1u);
  EXPECT_EQ(f.panels[0].x.name, "bits");
  EXPECT_EQ(f.panels[0].y.name, "grad_norm_sq");
  EXPECT_TRUE(f.panels[0].log_y);
  EXPECT_FALSE(f.panels[0].log_x);
  EXPECT_EQ(f.note, "");
}

TEST(Figure, ShowsAccuracyAndLossIfAllRunsMeasuredAccuracy) {
  Runs runs;
  runs.add("a", 50, 640000, falling);
  runs.add("b", 50, 640000, falling);
  runs.add_accuracy(0);
  EXPECT_EQ(runs.figure().panels.size(), 1u);
  runs.add_accuracy(1);
  const Figure f = runs.figure();
  ASSERT_EQ(f.panels.size(), 2u);
  EXPECT_EQ(f.panels[0].y.name, "accuracy");
  EXPECT_EQ(f.panels[0].x_label, "sent by all clients (MB)");
  EXPECT_EQ(f.panels[0].x_unit, 1e6);
  EXPECT_EQ(f.panels[1].x.name, "rounds");
  EXPECT_EQ(f.panels[1].y.name, "loss");
}

TEST(Figure, SpreadsRunsOfVeryDifferentLengthOnALogarithmicAxis) {
  Runs runs;
  runs.add("a", 50, 64, falling);
  runs.add("b", 50, 640, falling);
  EXPECT_TRUE(runs.figure().panels[0].log_x);
}

TEST(Figure, ExplainsLinesAndBandsInTheNote) {
  Runs runs;
  for (int seed = 1; seed <= 3; ++seed) runs.add("a", 50, 64, falling, seed);
  EXPECT_EQ(runs.figure().note, "line: median of 3 seeds, band: smallest to largest");
  for (int seed = 4; seed <= 5; ++seed) runs.add("a", 50, 64, falling, seed);
  EXPECT_EQ(runs.figure().note, "line: median of 5 seeds, band: quartiles");
  runs.add("b", 50, 64, falling);
  EXPECT_EQ(runs.figure(Band::kNone).note, "line: median of 1 to 5 seeds");
}

TEST(Figure, SubtractsFStarFromTheLossWithoutNegativeGaps) {
  Runs runs;
  runs.add("a", 50, 64, falling);
  runs.list[0].f_star = 1.5;
  const std::vector<PlotAxes> axes = {
      {*find_column(x_columns(), "rounds"), *find_column(y_columns(), "f-f*")}};
  const Figure f = make_figure(runs.list, axes);
  const std::vector<double>& y = f.panels[0].series[0].y;
  EXPECT_EQ(y[0], 0.5);
  EXPECT_EQ(y[50], 0);
  EXPECT_TRUE(f.panels[0].log_y);
}

TEST(Figure, StylesNeighbouringCurvesDifferentlyWithoutRepeats) {
  std::set<std::string> met;
  for (std::size_t k = 0; k < 200; ++k) {
    const CurveStyle a = curve_style(k), b = curve_style(k + 1);
    EXPECT_NE(a.color, b.color);
    EXPECT_NE(a.dashes, b.dashes);
    EXPECT_NE(a.marker, b.marker);
    EXPECT_TRUE(
        met.insert(std::string(a.color) + "|" + std::string(a.dashes) + "|" + std::string(a.marker)).second);
  }
}

// ---- SVG ----

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// Returns the lines of the curves in points of the page. These are the paths after the clip path, without
// bands and markers.
std::vector<std::vector<Point>> drawn_lines(const std::string& svg) {
  std::vector<std::vector<Point>> lines;
  const std::size_t begin = svg.find("<g clip-path"), end = svg.find("</g></g>", begin);
  for (std::size_t at = svg.find("<path d=\"", begin); at < end; at = svg.find("<path d=\"", at)) {
    at += 9;
    if (svg.substr(at, svg.find('>', at) - at).find("fill-opacity") != std::string::npos) continue;
    const char* p = svg.c_str() + at;
    while (*p == 'M') {
      char* rest = nullptr;
      double x = std::strtod(p + 1, &rest), y = std::strtod(rest, &rest);
      lines.emplace_back();
      lines.back().push_back({x / 10, y / 10});
      for (p = rest + 1; *p != 'M' && *p != '"'; p = rest) {
        x += std::strtod(p, &rest);
        y += std::strtod(rest, &rest);
        lines.back().push_back({x / 10, y / 10});
      }
    }
  }
  return lines;
}

TEST(Svg, DrawsEachCurveInsideItsFrame) {
  Runs runs;
  runs.add("a", 50, 64, falling);
  runs.add("b & c", 40, 64, falling);
  const std::string svg = draw_svg(runs.figure());
  const auto lines = drawn_lines(svg);
  EXPECT_EQ(lines.size(), 2u);
  for (const auto& line : lines)
    for (const auto& [x, y] : line) {
      EXPECT_TRUE(x >= 62 && x <= 62 + 290) << x;
      EXPECT_TRUE(y >= 20 && y <= 260) << y;
    }
  EXPECT_NE(svg.find("b &amp; c"), std::string::npos);
  EXPECT_NE(svg.find("communicated bits per client (uplink)"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Svg, DrawsAStraightLogarithmicLineWithTwoPoints) {
  const auto lines = drawn_lines(draw_svg(figure_of("a", 50, falling)));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].size(), 2u) << "points between the ends are dropped";
}

TEST(Svg, ThinsManyPointsAndKeepsTheirPeaks) {
  Runs runs;
  runs.add("a", 200000, 64, [](double k) { return 1 + 0.5 * std::sin(k); });
  runs.column(0, 2)[123456] = 50;
  const std::string svg = draw_svg(runs.figure());
  const auto points = drawn_lines(svg).at(0);
  EXPECT_LE(points.size(), 1300u);
  double top = kInf, bottom = 0;
  for (const auto& [x, y] : points) {
    top = std::min(top, y);
    bottom = std::max(bottom, y);
  }
  EXPECT_LT(top, bottom - 150);
  EXPECT_LT(svg.size(), 20000u);
}

TEST(Figure, SaysWhichCurvesDiverged) {
  const auto rises = [](double k) { return std::pow(10, 3 * k); };
  const auto ends = [](double k) { return k < 19 ? falling(k) : kInf; };
  for (const Runs::Function f : {Runs::Function(rises), +ends}) {
    Runs runs;
    runs.add("a", 20, 64, f);
    runs.add("b", 20, 64, falling);
    Figure figure = make_figure(runs.list, std::vector<PlotAxes>{{x_columns()[0], y_columns()[0]}});
    ASSERT_EQ(figure.curves.size(), 2u);
    mark_diverged(figure);
    EXPECT_TRUE(figure.curves[0].label.ends_with(" (diverged)")) << figure.curves[0].label;
    EXPECT_EQ(figure.curves[1].label.find("diverged"), std::string::npos) << figure.curves[1].label;
    const std::string script = draw_script(figure, "/tmp");
    const std::string key = "\"highest\": ";
    const std::size_t at = script.find(key);
    ASSERT_NE(at, std::string::npos);
    EXPECT_LT(std::stod(script.substr(at + key.size())), 1e6) << "the script leaves out what diverged";
  }
}

TEST(Svg, DrawsOnePointConstantsZerosAndGaps) {
  const auto constant = [](double) { return 0.25; };
  const auto zero = [](double k) { return k < 10 ? falling(k) : 0.0; };
  const auto zeros = [](double) { return 0.0; };
  const auto gap = [](double k) { return k == 10 ? kNan : falling(k); };
  const auto diverged = [](double k) { return k < 19 ? std::pow(10, 15 * k) : kInf; };
  for (const Runs::Function f : {Runs::Function(constant), +zero, +zeros, +gap, +diverged}) {
    for (const PlotColumn& y : y_columns()) {
      Runs runs;
      runs.add("a", 20, 64, f);
      runs.add("a", 30, 64, f, 2);
      runs.add("b", 20, 64, falling);
      for (const std::string& svg :
           {draw_svg(make_figure(runs.list, std::vector<PlotAxes>{{x_columns()[0], y}})),
            draw_tikz(make_figure(runs.list, std::vector<PlotAxes>{{x_columns()[0], y}}), "a.dat").tex}) {
        EXPECT_EQ(svg.find("nan"), std::string::npos) << y.name;
        EXPECT_EQ(svg.find("inf"), std::string::npos) << y.name;
      }
    }
  }
  EXPECT_EQ(drawn_lines(draw_svg(figure_of("gap", 20, gap))).size(), 2u);
  const std::string one = draw_svg(figure_of("one", 0, falling));
  EXPECT_TRUE(drawn_lines(one).empty());
  EXPECT_EQ(count(one, "a3.1 3.1 0 1 0"), 4u) << "half circles: the legend's and its own";
}

TEST(Svg, KeepsTheScaleOfOtherRunsIfOneDiverges) {
  Runs runs;
  runs.add("good", 50, 64, falling);
  runs.add("bad", 50, 64, [](double k) { return std::pow(10, 5 * k); });
  const auto good = drawn_lines(draw_svg(runs.figure())).at(0);
  EXPECT_GT(good.back().y - good.front().y, 40);
}

TEST(Svg, DrawsNoMarkersOutsideThePanel) {
  Runs runs;
  runs.add("good", 50, 64, falling);
  runs.add("bad", 50, 64, [](double k) { return std::pow(10, 5 * k); });
  const std::string svg = draw_svg(runs.figure());
  const std::size_t panel = svg.find("<clipPath");
  const double top = std::strtod(svg.c_str() + svg.find(" y=\"", panel) + 4, nullptr);
  std::size_t markers = 0;
  for (std::size_t at = svg.find("fill=\"#ffffff\" stroke=", panel); at != std::string::npos;
       at = svg.find("fill=\"#ffffff\" stroke=", at + 1)) {
    for (std::size_t m = svg.find('M', svg.rfind("d=\"", at)); m < at; m = svg.find('M', m + 1), ++markers) {
      char* rest = nullptr;
      std::strtod(svg.c_str() + m + 1, &rest);
      EXPECT_GT(std::strtod(rest, nullptr), top - 5);  // half a marker
    }
  }
  EXPECT_GE(markers, 3u);
}

TEST(Svg, DrawsBandsUnderAllLines) {
  Runs runs;
  for (int seed = 1; seed <= 4; ++seed)
    runs.add(
        "a", 50, 64, seed % 2 == 0 ? falling : [](double k) { return 3 * falling(k); }, seed);
  const std::string svg = draw_svg(runs.figure());
  EXPECT_EQ(count(svg, "fill-opacity"), 2u) << "in the legend, and in the panel";
  EXPECT_EQ(drawn_lines(svg).size(), 1u);
  EXPECT_EQ(count(draw_svg(runs.figure(Band::kNone)), "fill-opacity"), 0u);
}

TEST(Svg, KeepsALegendOfManyCurvesAboveThePanels) {
  Runs runs;
  for (int k = 0; k < 12; ++k) runs.add("a rather long label, number " + std::to_string(k), 20, 64, falling);
  runs.add(std::string(500, 'W'), 20, 64, falling);
  const std::string svg = draw_svg(runs.figure());
  const std::size_t clip = svg.find("<clipPath");
  const double top = std::strtod(svg.c_str() + svg.find("y=\"", clip) + 3, nullptr);
  std::size_t texts = 0;
  for (std::size_t at = svg.find("<text"); at < clip; at = svg.find("<text", at + 1), ++texts)
    EXPECT_LT(std::strtod(svg.c_str() + svg.find("y=\"", at) + 3, nullptr), top);
  EXPECT_EQ(texts, 13u);
  EXPECT_EQ(svg.find(std::string(100, 'W')), std::string::npos) << "cut to the width of the figure";
}

TEST(Svg, NeedsLessThan300KBForFiftyNoisyRuns) {
  Runs runs;
  for (int k = 0; k < 50; ++k) {
    runs.add("algorithm " + std::to_string(k), 10000, 64, falling);
    for (std::size_t i = 0; i < 10000; ++i)
      runs.column(static_cast<std::size_t>(k), 2)[i] = std::exp(
          -1e-3 * static_cast<double>(i) + 0.5 * std::sin(static_cast<double>(i * i % 1009 + i * 31)));
  }
  EXPECT_LT(draw_svg(runs.figure()).size(), 300000u);
}

// ---- TikZ ----

TEST(Tikz, NamesColumnsThatTheTableHas) {
  Runs runs;
  for (int seed = 1; seed <= 3; ++seed)
    runs.add(
        "a_b & 50%", 50, 64, seed == 2 ? falling : [](double k) { return 2 * falling(k); }, seed);
  runs.add("c", 30, 64, falling);
  const TikzFigure t = draw_tikz(runs.figure(), "figure.dat");
  std::istringstream table(t.dat);
  std::string line;
  std::getline(table, line);
  std::getline(table, line);
  const std::set<std::string> names = [&] {
    std::istringstream words(line);
    return std::set<std::string>(std::istream_iterator<std::string>(words), {});
  }();
  EXPECT_EQ(names.size(), 6u) << "x and y of two curves, and of one band";
  EXPECT_NE(t.tex.find("{line: median of 1 to 3 seeds, band: smallest to largest};"), std::string::npos);
  EXPECT_NE(t.tex.find("\\pgfplotsset{table/search path={FOLDER}} and \\input{FOLDER/figure}"),
            std::string::npos);
  std::size_t plots = 0;
  for (std::size_t at = t.tex.find("table[x="); at != std::string::npos;
       at = t.tex.find("table[x=", at + 1), ++plots) {
    const std::size_t comma = t.tex.find(", y=", at), end = t.tex.find(']', at);
    EXPECT_TRUE(names.count(t.tex.substr(at + 8, comma - at - 8))) << t.tex.substr(at, 60);
    EXPECT_TRUE(names.count(t.tex.substr(comma + 4, end - comma - 4))) << t.tex.substr(at, 60);
  }
  EXPECT_EQ(plots, 3u);
  EXPECT_NE(t.tex.find("\\addlegendentry{a\\_b \\& 50\\%}"), std::string::npos);
  EXPECT_EQ(count(t.tex, "{"), count(t.tex, "}"));
  EXPECT_EQ(count(t.tex, "\\begin{"), count(t.tex, "\\end{"));
  for (std::size_t cells; std::getline(table, line);) {
    std::istringstream words(line);
    cells = static_cast<std::size_t>(std::distance(std::istream_iterator<std::string>(words), {}));
    EXPECT_EQ(cells, 6u);
  }
}

}  // namespace
}  // namespace gradwire
