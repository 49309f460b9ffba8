// Content of a figure, independent of the format. plot_svg.h, plot_script.h and plot_tikz.h draw it.
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

// Keys of the runs that make panels and curves.
struct PlotKeys {
  std::string by = {};                  // key with separate panels for each of its values; empty if unused
  std::vector<std::string> aside = {};  // keys that do not distinguish curves, such as a tuned step size
};

struct PlotPanel {
  PlotColumn x, y;
  std::string value;  // value of the key PlotKeys::by; empty if all runs are in the panel
  std::string title;  // as in "count = 10"; empty if it has no title
  bool log_x = false, log_y = false;
  double x_unit = 1, y_unit = 1;  // divisors of the numbers
  std::string x_label, y_label;
  std::string x_tex, y_tex;    // the labels in LaTeX
  std::vector<Series> series;  // one per curve, in these units
  std::vector<Series> bounds;  // empty or one per curve; only x and y are set
};

struct Figure {
  std::vector<PlotRun> runs;
  std::vector<PlotCurve> curves;
  std::string by;                 // PlotKeys::by
  std::vector<PlotPanel> panels;  // row by row
  std::size_t columns = 1;        // panels in a row
  double width = 0;               // points on the page; 0 if the figure is as wide as its panels
  Band band = Band::kNone;
  bool embeds = false;  // the script has the numbers of the runs, and does not read their metrics.csv
  std::string note;     // explains lines and bands, if a curve has several runs
};

// Returns the default panels. They show accuracy against bytes and loss against rounds if all runs measured
// accuracy, else the squared gradient norm against bits, or the loss if only two rows have the norm. If all
// runs have the Lyapunov function, one more panel shows it against rounds. `x` replaces bytes and bits unless
// it is null.
std::vector<PlotAxes> usual_axes(std::span<const PlotRun> runs, const PlotColumn* x);

// Returns the values of the key among the runs: numbers in ascending order, then words in alphabetical order.
std::vector<std::string> values_of_key(std::span<const PlotRun> runs, const std::string& key);

// Makes the figure; chooses scales and units from the numbers. Without `band`, it uses quartiles, or the
// range if no curve has more than three runs. With `keys.by`, all axes are repeated for each of its values. A
// key with one value for each value of `keys.by` does not distinguish curves. REQUIRES: the runs have all
// columns of the axes, and f* if a panel shows a gap.
Figure make_figure(std::vector<PlotRun> runs, std::span<const PlotAxes> axes,
                   std::optional<Band> band = std::nullopt, const PlotKeys& keys = {});

// Returns the largest y that a logarithmic panel shows. Larger numbers come from runs that diverged.
double highest_shown(const PlotPanel& panel);
// Adds "(diverged)" to the labels of curves that leave their panels upwards or end without a number.
void mark_diverged(Figure& figure);

// Style of a curve: distinct in grey and for people with colour blindness.
struct CurveStyle {
  std::string_view color;   // "#rrggbb"
  std::string_view dashes;  // stroke-dasharray of SVG; empty for a solid line
  std::string_view marker;  // names of Matplotlib: o s ^ D v P X *
};
CurveStyle curve_style(std::size_t curve);

}  // namespace gradwire
