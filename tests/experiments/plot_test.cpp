// Axes, what a figure shows, and the two ways in which it is drawn.
#include "experiments/plot/plot.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>

#include "experiments/plot/plot_axis.h"
#include "experiments/plot/plot_script.h"
#include "experiments/plot/plot_svg.h"
#include "experiments/support/results_dir.h"
#include "proto/report/columns.h"
#include "tests/support/data_files.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> list;
  for (const Tick& t : axis.ticks())
    if (!t.label.empty()) list.push_back(t.label);
  return list;
}

using Labels = std::vector<std::string>;

TEST(Axis, TicksAreRoundNumbers) {
  EXPECT_EQ(labels(Axis::cover(std::vector<double>{0, 1000}, false, 6)),
            (Labels{"0", "200", "400", "600", "800", "1000"}));
  EXPECT_EQ(labels(Axis::cover(std::vector<double>{82.3, 97.1}, false, 6)), (Labels{"85", "90", "95"}));
  EXPECT_EQ(labels(Axis::cover(std::vector<double>{-0.2, 0.2}, false, 6)),
            (Labels{"\u22120.2", "\u22120.1", "0.0", "0.1", "0.2"}));
}

TEST(Axis, LargeAndSmallNumbersShareAnExponent) {
  const Axis large = Axis::cover(std::vector<double>{0, 2.4e7}, false, 6);
  EXPECT_EQ(large.exponent(), 6);
  EXPECT_EQ(labels(large), (Labels{"0", "5", "10", "15", "20"}));
  EXPECT_EQ(Axis::cover(std::vector<double>{0, 3e-5}, false, 6).exponent(), -6);
}

TEST(Axis, ALogarithmicOneCountsInPowersOfTen) {
  EXPECT_EQ(labels(Axis::cover(std::vector<double>{1e-12, 1}, true, 7)),
            (Labels{"10^{-12}", "10^{-10}", "10^{-8}", "10^{-6}", "10^{-4}", "10^{-2}", "10^{0}"}));
  EXPECT_EQ(labels(Axis::cover(std::vector<double>{0.01, 100}, true, 7)),
            (Labels{"0.01", "0.1", "1", "10", "100"}));
}

TEST(Axis, ANarrowLogarithmicOneStillHasLabels) {
  for (const double width : {1.0001, 1.02, 1.3, 2.0, 5.0, 30.0, 90.0})
    for (const double low : {1e-9, 0.3, 0.97, 7e5}) {
      const auto list = labels(Axis::cover(std::vector<double>{low, low * width}, true, 7));
      EXPECT_GE(list.size(), 2u) << low << " x " << width;
      EXPECT_LE(list.size(), 9u) << low << " x " << width;
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

TEST(Axis, StandsAnyNumbers) {
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

PlotCurve curve(const std::string& label, std::uint32_t rounds, double bits, double (*grad)(double)) {
  PlotCurve c;
  c.label = label;
  c.metrics = "runs/" + label + "/metrics.csv";
  for (std::uint32_t k = 0; k <= rounds; ++k) {
    RoundRecord r;
    r.round = k;
    r.grad_norm_sq = grad(k);
    r.loss = 1 + r.grad_norm_sq;
    r.bits_up = bits * k;
    r.bytes_up = static_cast<std::uint64_t>(20 * bits / 8 * k);
    c.records.push_back(r);
  }
  return c;
}
double falling(double k) { return std::exp(-0.1 * k); }

void add_accuracy(PlotCurve& c) {
  for (RoundRecord& r : c.records) r.accuracy = 1 - 0.9 * r.grad_norm_sq;
}

TEST(Figure, ShowsTheGradientAgainstBitsOnALogarithmicAxis) {
  const Figure f = make_figure({curve("a", 50, 64, falling)}, nullptr, nullptr);
  ASSERT_EQ(f.panels.size(), 1u);
  EXPECT_EQ(f.panels[0].x->csv, "bits_up");
  EXPECT_EQ(f.panels[0].y->csv, "grad_norm_sq");
  EXPECT_TRUE(f.panels[0].log_y);
  EXPECT_FALSE(f.panels[0].log_x);
}

TEST(Figure, ShowsAccuracyBesideLossWhenAllRunsMeasuredIt) {
  std::vector<PlotCurve> curves = {curve("a", 50, 640000, falling), curve("b", 50, 640000, falling)};
  add_accuracy(curves[0]);
  EXPECT_EQ(make_figure(curves, nullptr, nullptr).panels.size(), 1u);
  add_accuracy(curves[1]);
  const Figure f = make_figure(curves, nullptr, nullptr);
  ASSERT_EQ(f.panels.size(), 2u);
  EXPECT_EQ(f.panels[0].y->csv, "accuracy");
  EXPECT_EQ(f.panels[0].x_label, "sent by all clients (MB)");
  EXPECT_EQ(f.panels[0].x_unit, 1e6);
  EXPECT_EQ(f.panels[1].x->csv, "round");
  EXPECT_EQ(f.panels[1].y->csv, "loss");
}

TEST(Figure, SpreadsRunsOfVeryDifferentLengthOnALogarithmicAxis) {
  const Figure f = make_figure({curve("a", 50, 64, falling), curve("b", 50, 640, falling)}, nullptr, nullptr);
  EXPECT_TRUE(f.panels[0].log_x);
}

TEST(Figure, NeighbouringCurvesDifferInColourDashesAndMarker) {
  for (std::size_t k = 0; k < 40; ++k) {
    const CurveStyle a = curve_style(k), b = curve_style(k + 1);
    EXPECT_NE(a.color, b.color);
    EXPECT_NE(a.dashes, b.dashes);
    EXPECT_NE(a.marker, b.marker);
  }
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// The coordinates of the n-th <path>.
std::vector<std::pair<double, double>> path(const std::string& svg, std::size_t n) {
  std::size_t at = 0;
  for (std::size_t k = 0; k <= n; ++k) at = svg.find("<path d=\"", at) + 9;
  std::vector<std::pair<double, double>> points;
  const char* p = svg.c_str() + at;
  while (*p == 'M' || *p == 'L') {
    char* end = nullptr;
    const double x = std::strtod(p + 1, &end);
    const double y = std::strtod(end, &end);
    points.emplace_back(x, y);
    p = end;
  }
  return points;
}

TEST(Svg, DrawsEachCurveInsideItsFrame) {
  const std::string svg =
      draw_svg(make_figure({curve("a", 50, 64, falling), curve("b & c", 40, 64, falling)}, nullptr, nullptr));
  EXPECT_EQ(count(svg, "<path"), 2u);
  EXPECT_EQ(path(svg, 0).size(), 51u);
  for (std::size_t k = 0; k < 2; ++k)
    for (const auto& [x, y] : path(svg, k)) {
      EXPECT_TRUE(x >= 62 && x <= 62 + 290) << x;
      EXPECT_TRUE(y >= 20 && y <= 260) << y;
    }
  EXPECT_NE(svg.find("b &amp; c"), std::string::npos);
  EXPECT_NE(svg.find("communicated bits per client (uplink)"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Svg, AStraightLineOnALogarithmicAxisIsStraight) {
  const auto points = path(draw_svg(make_figure({curve("a", 50, 64, falling)}, nullptr, nullptr)), 0);
  const double slope = (points[50].second - points[0].second) / (points[50].first - points[0].first);
  for (const auto& [x, y] : points) EXPECT_NEAR(y, points[0].second + slope * (x - points[0].first), 0.05);
}

TEST(Svg, ManyPointsBecomeAThousandAndKeepTheirPeaks) {
  PlotCurve c = curve("a", 200000, 64, [](double k) { return 1 + 0.5 * std::sin(k); });
  c.records[123456].grad_norm_sq = 50;
  const std::string svg = draw_svg(make_figure({c}, nullptr, nullptr));
  const auto points = path(svg, 0);
  EXPECT_LE(points.size(), 1300u);
  double top = kInf, bottom = 0;
  for (const auto& [x, y] : points) {
    top = std::min(top, y);
    bottom = std::max(bottom, y);
  }
  EXPECT_LT(top, bottom - 150);
  EXPECT_LT(svg.size(), 60000u);
}

TEST(Svg, DrawsOnePointConstantsZerosAndGaps) {
  PlotCurve one = curve("one", 0, 64, falling),
            constant = curve("constant", 20, 64, [](double) { return 0.25; });
  PlotCurve zero = curve("zero", 20, 64, [](double k) { return k < 10 ? falling(k) : 0.0; });
  PlotCurve zeros = curve("zeros", 20, 64, [](double) { return 0.0; });
  PlotCurve gap = curve("gap", 20, 64, [](double k) { return k == 10 ? kNan : falling(k); });
  PlotCurve diverged =
      curve("diverged", 20, 64, [](double k) { return k < 19 ? std::pow(10, 15 * k) : kInf; });
  PlotCurve empty;
  for (const auto& c : {one, constant, zero, zeros, gap, diverged, empty}) {
    for (const PlotColumn& y : y_columns()) {
      const std::string svg = draw_svg(make_figure({c}, nullptr, &y));
      EXPECT_EQ(svg.find("nan"), std::string::npos) << c.label;
      EXPECT_EQ(svg.find("inf"), std::string::npos) << c.label;
    }
  }
  EXPECT_EQ(count(draw_svg(make_figure({gap}, nullptr, nullptr)), "<path"), 2u);
  EXPECT_EQ(count(draw_svg(make_figure({one}, nullptr, nullptr)), "<path"), 0u);
  EXPECT_EQ(count(draw_svg(make_figure({one}, nullptr, nullptr)), "<circle"),
            2u);  // the legend's and its own
}

TEST(Svg, ALegendOfManyCurvesStaysAboveThem) {
  std::vector<PlotCurve> curves;
  for (int k = 0; k < 12; ++k)
    curves.push_back(curve("a rather long label, number " + std::to_string(k), 20, 64, falling));
  const std::string svg = draw_svg(make_figure(curves, nullptr, nullptr));
  const std::size_t clip = svg.find("<clipPath");
  const double top = std::strtod(svg.c_str() + svg.find("y=\"", clip) + 3, nullptr);
  std::size_t texts = 0;
  for (std::size_t at = svg.find("<text"); at < clip; at = svg.find("<text", at + 1), ++texts)
    EXPECT_LT(std::strtod(svg.c_str() + svg.find("y=\"", at) + 3, nullptr), top);
  EXPECT_EQ(texts, 12u);
}

// ---- folders ----

void write_run(const TemporaryFolder& folder, const std::string& name, const std::string& algorithm,
               bool accuracy = false, const std::string& compressor = "topk:k=1") {
  folder.write(name + "/config.toml", "name = \"" + name + "\"\n[algorithm]\nname = \"" + algorithm +
                                          "\"\ncompressor = \"" + compressor + "\"\n");
  PlotCurve c = curve(name, 20, 64, falling);
  if (accuracy) add_accuracy(c);
  std::string text = metrics_header() + "\n";
  for (const RoundRecord& r : c.records) text += metrics_line(r) + "\n";
  folder.write(name + "/metrics.csv", text);
}

std::string usage_error(const PlotRequest& request) {
  try {
    plot_command(request);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Plot, LabelsAreTheMethodsOrElseTheNames) {
  const TemporaryFolder folder;
  write_run(folder, "d", "marina", false, "randk:k=10,scaled=true");
  write_run(folder, "e", "ef21", false, "randk:k=10,scaled=false");
  write_run(folder, "f", "gd", false, "identity");
  const auto label = [&](const char* name) {
    return load_curves(std::vector{folder.path() / name})[0].label;
  };
  EXPECT_EQ(label("d"), "marina, randk:k=10");
  EXPECT_EQ(label("e"), "ef21, randk:k=10,scaled=false");
  EXPECT_EQ(label("f"), "gd");
  write_run(folder, "a", "ef21");
  write_run(folder, "b", "gd");
  write_run(folder, "c", "gd");
  const fs::path a = folder.path() / "a", b = folder.path() / "b", c = folder.path() / "c";
  EXPECT_EQ(load_curves(std::vector<fs::path>{a, b})[0].label, "ef21, topk:k=1");
  EXPECT_EQ(load_curves(std::vector<fs::path>{b, c})[1].label, "c");
}

TEST(Plot, RefusesWhatItCannotDrawOrMustNotOverwrite) {
  const TemporaryFolder folder;
  write_run(folder, "a", "ef21");
  const fs::path a = folder.path() / "a";
  EXPECT_NE(usage_error({{folder.path()}, "", "", ""}).find("no results of a run there"), std::string::npos);
  EXPECT_NE(usage_error({{a}, "x.png", "", ""}).find("end the name in .svg"), std::string::npos);
  EXPECT_NE(usage_error({{a}, "", "round", ""}).find("did you mean 'rounds'"), std::string::npos);
  EXPECT_NE(usage_error({{a}, "", "", "accuracy"}).find("has no accuracy"), std::string::npos);
  EXPECT_NE(usage_error({{a}, "", "sim_seconds", ""}).find("the run was on no virtual clock"),
            std::string::npos);
  const fs::path mine = folder.write("mine.svg", "<svg>a drawing of my own</svg>");
  EXPECT_NE(usage_error({{a}, mine, "", ""}).find("was not written by gradwire"), std::string::npos);
  folder.write("empty/config.toml", "name = \"e\"\n");
  folder.write("empty/metrics.csv", metrics_header() + "\n");
  EXPECT_NE(usage_error({{folder.path() / "empty"}, "", "", ""}).find("has no rows"), std::string::npos);
  EXPECT_EQ(usage_error({{a}, "", "", ""}), "no error");
  EXPECT_EQ(usage_error({{a}, "", "", ""}), "no error") << "its own files it replaces";
}

int shell(const std::string& command) { return std::system((command + " > /dev/null 2>&1").c_str()); }

// A Matplotlib that only notes which curves it was given.
constexpr const char* kFakePyplot = R"(
import sys
rcParams = {}
class Anything:
    def __getattr__(self, name): return lambda *a, **k: ([], [])
class Axes(Anything):
    def plot(self, x, y, **k): print("plot", k["label"], len(x), len(y), k["marker"], file=log)
class Figure(Anything):
    def savefig(self, out, **k): open(out, "w").write("figure")
log = open(sys.argv[2], "w")
def subplots(rows, columns, **k): return Figure(), [[Axes() for _ in range(columns)]]
)";

TEST(Plot, TheScriptRunsFromAnyFolderAndReadsTheMetrics) {
  if (shell("python3 --version") != 0) GTEST_SKIP() << "no python3";
  const TemporaryFolder folder;
  write_run(folder, "a", "ef21", true);
  write_run(folder, "b", "gd", true);
  folder.write("fake/matplotlib/__init__.py", "def use(name): pass\n");
  folder.write("fake/matplotlib/pyplot.py", kFakePyplot);
  fs::create_directory(folder.path() / "figures");
  plot_command({{folder.path() / "a", folder.path() / "b"}, folder.path() / "figures/both.svg", "", ""});
  const std::string log = (folder.path() / "log").string(), out = (folder.path() / "both.png").string();
  ASSERT_EQ(shell("cd / && PYTHONPATH='" + (folder.path() / "fake").string() + "' python3 '" +
                  (folder.path() / "figures/both.py").string() + "' '" + out + "' '" + log + "'"),
            0);
  std::ifstream in(log);
  const std::string noted{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(count(noted, "plot ef21, topk:k=1 21 21 o\n"), 2u) << noted;
  EXPECT_EQ(count(noted, "plot gd, topk:k=1 21 21 s\n"), 2u) << noted;
  EXPECT_TRUE(fs::exists(out));
}

TEST(Plot, TheSvgIsWellFormed) {
  if (shell("python3 --version") != 0) GTEST_SKIP() << "no python3";
  const TemporaryFolder folder;
  const std::string svg = draw_svg(make_figure({curve("<a> & \"b\"", 30, 1e6, falling)}, nullptr, nullptr));
  const fs::path file = folder.write("figure.svg", svg);
  EXPECT_EQ(shell("python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' '" +
                  file.string() + "'"),
            0);
}

}  // namespace
}  // namespace gradwire
