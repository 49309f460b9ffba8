// Runs every script if Matplotlib is installed, and checks that it draws something.
#include "engine/tape/debug/figures.h"

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/data_files.h"
#include "tests/support/run_program.h"

namespace gradwire {
namespace {

// Returns the Python that has Matplotlib, or an empty string. The first Python of the search path may have no
// packages.
std::string python() {
  for (const char* each : {"python3", "/usr/bin/python3"})
    if (std::system((std::string(each) + " -c 'import matplotlib' > /dev/null 2>&1").c_str()) == 0)
      return each;
  return {};
}

FunctionFigure function_figure() {
  FunctionFigure figure{"Two curves, \"quoted\" and $5", "x", "f(x)", {}, {{"sin $x$", {}}, {"gap", {}}}};
  for (int k = 0; k <= 100; ++k) {
    const double x = 0.1 * k;
    figure.x.push_back(x);
    figure.curves[0].y.push_back(std::sin(x));
    figure.curves[1].y.push_back(k % 25 == 0 ? std::numeric_limits<double>::quiet_NaN() : std::cos(x) / 2);
  }
  return figure;
}

HeatMapFigure heat_map(std::size_t rows, std::size_t columns, bool annotated) {
  HeatMapFigure figure{"Slopes by layer", "input", "output", rows, columns, {}, {}, {}, annotated};
  for (std::size_t k = 0; k < rows * columns; ++k)
    figure.values.push_back(std::sin(0.3 * static_cast<double>(k)));
  if (annotated) {
    for (std::size_t r = 0; r < rows; ++r) figure.row_names.push_back("row " + std::to_string(r));
    for (std::size_t c = 0; c < columns; ++c) figure.column_names.push_back("c" + std::to_string(c));
  }
  return figure;
}

// GRADWIRE_KEEP_FIGURES names a folder that keeps the figures for inspection.
void expect_figure(const std::string& name, const std::string& script) {
  const std::string program = python();
  if (program.empty()) GTEST_SKIP() << "no Matplotlib here: tools/setup --dev";
  const TemporaryFolder folder;
  const char* const kept = std::getenv("GRADWIRE_KEEP_FIGURES");
  const std::filesystem::path figure = (kept ? std::filesystem::path(kept) : folder.path()) / (name + ".png");
  const std::string file = folder.write(name + ".py", script).string();
  ASSERT_EQ(std::system((program + " '" + file + "' '" + figure.string() + "'").c_str()), 0) << script;
  const std::string png = read_file(figure);
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_GT(png.size(), 5000u) << "an empty page";
}

TEST(Figures, DrawFunction) { expect_figure("function", figure_script(function_figure())); }
TEST(Figures, DrawHeatMap) { expect_figure("heat_map", figure_script(heat_map(20, 40, false))); }
TEST(Figures, DrawAnnotatedHeatMap) { expect_figure("annotated", figure_script(heat_map(5, 8, true))); }
TEST(Figures, DrawNanAndInfinity) {
  HeatMapFigure figure = heat_map(3, 3, true);
  figure.values[4] = std::numeric_limits<double>::quiet_NaN();
  figure.values[5] = std::numeric_limits<double>::infinity();
  expect_figure("nan", figure_script(figure));
}

TEST(Figures, RejectMismatchedLengths) {
  FunctionFigure figure = function_figure();
  figure.curves[1].y.pop_back();
  EXPECT_THROW(figure_script(figure), std::logic_error);
  HeatMapFigure map = heat_map(2, 3, true);
  map.row_names.pop_back();
  EXPECT_THROW(figure_script(map), std::logic_error);
  map = heat_map(2, 3, false);
  map.values.pop_back();
  EXPECT_THROW(figure_script(map), std::logic_error);
  EXPECT_THROW(figure_script(HeatMapFigure()), std::logic_error);
}

TEST(Figures, KeepTextAsText) {
  FunctionFigure figure = function_figure();
  figure.title = "a\"); import os; (\"\n\\";
  EXPECT_NE(figure_script(figure).find("\"a\\\"); import os; (\\\"\\x0a\\\\\""), std::string::npos);
}

}  // namespace
}  // namespace gradwire
