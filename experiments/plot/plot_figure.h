// What a figure shows, apart from how it is drawn: plot_svg.h and plot_script.h draw it.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rounds/round_loop.h"

namespace gradwire {

// A column of metrics.csv that can stand on an axis.
struct PlotColumn {
  std::string_view name;                        // as --x and --y spell it
  std::string_view csv;                         // as metrics.csv spells it
  std::string_view label;                       // with {} where the unit goes, if it has one
  bool bytes = false;                           // shown in kB, MB, ...
  double (*get)(const RoundRecord&) = nullptr;  // nan: empty
};
std::span<const PlotColumn> x_columns();
std::span<const PlotColumn> y_columns();
// Null: no such column.
const PlotColumn* find_column(std::span<const PlotColumn> columns, std::string_view name);

struct PlotCurve {
  std::string label;
  std::filesystem::path metrics;  // metrics.csv
  std::vector<RoundRecord> records;
};

struct PlotPanel {
  const PlotColumn* x = nullptr;
  const PlotColumn* y = nullptr;
  bool log_x = false, log_y = false;
  double x_unit = 1, y_unit = 1;  // numbers are divided by it
  std::string x_label, y_label;
};

struct Figure {
  std::vector<PlotCurve> curves;
  std::vector<PlotPanel> panels;
};

// Decides scales and units from the numbers.
PlotPanel make_panel(std::span<const PlotCurve> curves, const PlotColumn& x, const PlotColumn& y);

// x and y may be null: accuracy against bytes beside loss against rounds when all curves have an accuracy;
// else the squared norm of the gradient against bits.
Figure make_figure(std::vector<PlotCurve> curves, const PlotColumn* x, const PlotColumn* y);

// How a curve is drawn: distinct in grey, too.
struct CurveStyle {
  std::string_view color;   // "#rrggbb"
  std::string_view dashes;  // SVG's stroke-dasharray; empty: solid
  std::string_view marker;  // Matplotlib's names: o s ^ D v P X
};
CurveStyle curve_style(std::size_t curve);

}  // namespace gradwire
