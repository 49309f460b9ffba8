// What a figure shows, apart from how it is drawn: plot_svg.h, plot_script.h and plot_tikz.h draw it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plotting/plot_column.h"
#include "plotting/plot_curves.h"
#include "plotting/plot_runs.h"
#include "plotting/plot_series.h"

namespace gradwire {

struct PlotAxes {
  PlotColumn x, y;
};

// Which keys of the runs make panels and curves.
struct PlotKeys {
  std::string by = {};                  // each value of this key has panels of its own; empty: none
  std::vector<std::string> aside = {};  // keys that do not tell curves apart, as a step that was tuned
};

struct PlotPanel {
  PlotColumn x, y;
  std::string value;  // of the key that panels go by; empty: all runs are in it
  std::string title;  // "count = 10"; empty: none
  bool log_x = false, log_y = false;
  double x_unit = 1, y_unit = 1;  // numbers are divided by it
  std::string x_label, y_label;
  std::string x_tex, y_tex;    // the same for LaTeX
  std::vector<Series> series;  // one per curve, in these units
  std::vector<Series> bounds;  // one per curve, or none; x and y alone
};

struct Figure {
  std::vector<PlotRun> runs;
  std::vector<PlotCurve> curves;
  std::string by;                 // PlotKeys'
  std::vector<PlotPanel> panels;  // row by row
  std::size_t columns = 1;        // panels in a row
  Band band = Band::kNone;
  std::string note;  // says what lines and bands are, where a curve is several runs
};

// Accuracy against bytes beside loss against rounds when all runs measured accuracy; else the squared norm of
// the gradient against bits. Beside them the Lyapunov function against rounds when all runs have it. `x`: in
// place of bytes and bits, if there is one.
std::vector<PlotAxes> usual_axes(std::span<const PlotRun> runs, const PlotColumn* x);

// The values of the key among the runs: numbers by their size, before words in alphabetical order.
std::vector<std::string> values_of_key(std::span<const PlotRun> runs, const std::string& key);

// Decides scales and units from the numbers. Without `band`: quartiles, or the range if no curve is of more
// than three runs. With `keys.by`: all axes for its first value, then for its second, and so on; a key that
// has one value for each of its values does not tell curves apart. REQUIRES: the runs have all columns of the
// axes; f* of each that a panel with a gap shows.
Figure make_figure(std::vector<PlotRun> runs, std::span<const PlotAxes> axes,
                   std::optional<Band> band = std::nullopt, const PlotKeys& keys = {});

// How a curve is drawn: distinct in grey, and for those who do not tell all colours apart.
struct CurveStyle {
  std::string_view color;   // "#rrggbb"
  std::string_view dashes;  // SVG's stroke-dasharray; empty: solid
  std::string_view marker;  // Matplotlib's names: o s ^ D v P X *
};
CurveStyle curve_style(std::size_t curve);

}  // namespace gradwire
