#include "plotting/plot_script.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/value.h"
#include "plotting/plot_width.h"
#include "report/json.h"

namespace gradwire {
namespace {

constexpr double kInch = 72, kSides = 78;  // points
constexpr double kLargest = 1e300;         // number that Matplotlib can draw

constexpr std::string_view kHead = R"py(#!/usr/bin/env python3
# Written by gradwire; you may edit it. Needs Matplotlib (Debian and Ubuntu: python3-matplotlib).
#   python3 plot.py [FILE]     FILE ends in .png, .pdf or .svg; without one: a PNG next to this script
import bisect
import csv
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent

)py";

constexpr std::string_view kTail =
    R"py(STYLE = {"font.size": 8 if WIDTH else 10, "axes.grid": True, "grid.color": "#e4e4e4", "axes.axisbelow": True}


def table_of(path):
    """Returns the rows of a metrics.csv, or of its copy in this script."""
    text = METRICS[path] if path in METRICS else (HERE / path).read_text()
    return list(csv.DictReader(text.splitlines()))


def column(rows, names, unit):
    return [sum(float(row[n]) if row[n] else math.nan for n in names) / unit for row in rows]


def points(rows, f_star, panel, y_name="y"):
    """Returns the rows that have a number; x does not decrease."""
    if "grad_norm_sq" in panel["y"]:
        rows = [row for row in rows if row["grad_norm_sq"]]  # the others did not measure it
    xs, ys = [], []
    for x, y in zip(column(rows, panel["x"], panel["x_unit"]), column(rows, panel[y_name], panel["y_unit"])):
        if not math.isfinite(x) or (panel["may_lack"] and math.isnan(y)):
            continue
        xs.append(max(x, xs[-1]) if xs else x)
        ys.append(max(0.0, y - f_star) if panel["gap"] and not math.isnan(y) else y)
    return xs, ys


def value_at(run, x, panel):
    """Interpolates between rows, in logarithms on logarithmic axes; keeps the last value."""
    xs, ys = run
    k = bisect.bisect_right(xs, x)
    if k == 0:
        return ys[0]
    left = ys[k - 1]
    if k == len(xs) or xs[k - 1] == x:
        return left
    right, a, b = ys[k], xs[k - 1], xs[k]
    share = math.log(x / a) / math.log(b / a) if panel["log_x"] and a > 0 else (x - a) / (b - a)
    if not (math.isfinite(left) and math.isfinite(right)) or (panel["log_y"] and not (left > 0 and right > 0)):
        return left
    return left * (right / left) ** share if panel["log_y"] else left + share * (right - left)


def quantile(values, q, panel):
    """Returns the q-quantile of sorted values, interpolated between ranks."""
    at = q * (len(values) - 1)
    k = int(at)
    share = at - k
    if share == 0:
        return values[k]
    a, b = values[k], values[k + 1]
    if not math.isfinite(b) or (panel["log_y"] and a <= 0):
        return a if share < 0.5 else b
    return a * (b / a) ** share if panel["log_y"] else a + share * (b - a)


def summary(runs, panel):
    """Returns x, the median over the runs, and the lower and upper ends of the band."""
    if len(runs) == 1:
        return runs[0] + (None, None)
    end = sorted(xs[-1] for xs, _ in runs)[len(runs) // 2]
    grid = sorted({x for xs, _ in runs for x in xs if x <= end})
    middle, low, high = [], [], []
    for x in grid:
        values = [value_at(run, x, panel) for run in runs]
        values = sorted(math.inf if math.isnan(v) else v for v in values)
        middle.append(quantile(values, 0.5, panel))
        low.append(quantile(values, 0.25 if BAND == "quartiles" else 0, panel))
        high.append(quantile(values, 0.75 if BAND == "quartiles" else 1, panel))
    return grid, middle, low, high


def draw(axes):
    """Draws each panel into its axes."""
    for ax, panel in zip(axes, PANELS):
        if panel["log_x"]:
            ax.set_xscale("log", nonpositive="mask")
        if panel["log_y"]:
            ax.set_yscale("log", nonpositive="mask")
        ax.set_xlabel(panel["x_label"])
        ax.set_ylabel(panel["y_label"])
        ax.set_title(panel["title"])
    for label, runs, style in CURVES:
        tables = [(table_of(path), f_star, value) for path, f_star, value in runs]
        for ax, panel in zip(axes, PANELS):
            series = [points(table, f_star, panel) for table, f_star, value in tables if value == panel["value"]]
            x, y, low, high = summary([s for s in series if s[0]] or [([], [])], panel)
            y = [v if v <= panel["highest"] else math.nan for v in y]  # larger numbers come from runs that diverged
            if low and BAND != "none":
                low, high = ([min(v, panel["highest"]) for v in band] for band in (low, high))
                ax.fill_between(x, low, high, color=style["color"], alpha=0.2, linewidth=0)
            if panel["bound"]:
                bounds = [points(table, f_star, panel, "bound") for table, f_star, value in tables
                          if value == panel["value"]]
                at, bound = summary([s for s in bounds if s[0]] or [([], [])], panel)[:2]
                lowest = min([v for v in y if v > 0] or [0])  # a bound that falls further would shrink the curve
                ax.plot(at, [v if v > lowest / 10 else math.nan for v in bound], color=style["color"],
                        linestyle=(0, (4.5, 3.5)), linewidth=0.9)
            ax.plot(x, y, label=label, linewidth=1.7, markersize=5.5, markerfacecolor="white",
                    markevery=max(1, len(x) // 6), **style)


def new_figure(plt):
    """Returns a figure with all panels and a legend, and the axes of the panels."""
    rows = (len(PANELS) + COLUMNS - 1) // COLUMNS
    width = WIDTH or 5.1 * COLUMNS
    figure, grid = plt.subplots(rows, COLUMNS, figsize=(width, width / COLUMNS * 0.69 * rows), squeeze=False)
    axes = [ax for line in grid for ax in line]
    draw(axes)
    for ax in axes[len(PANELS):]:
        ax.set_visible(False)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.tight_layout()
    figure.legend(handles, labels, loc="lower left", bbox_to_anchor=(0.08, 1.0), ncol=3, frameon=False, title=NOTE,
                  alignment="left")
    return figure, axes[:len(PANELS)]


def main():
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update(STYLE)
    figure, _ = new_figure(plt)
    out = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().with_suffix(".png")
    figure.savefig(out, dpi=200, bbox_inches="tight")
    print(out)


if __name__ == "__main__":
    main()
)py";

std::string truth(bool value) { return value ? "True" : "False"; }

// Returns a Python string. JSON without surrogate escapes is valid Python.
std::string literal(std::string_view text) { return json_line(text); }

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + literal(name);
  return "[" + text + "]";
}

std::string band_name(Band band) {
  switch (band) {
    case Band::kNone: return "none";
    case Band::kQuartiles: return "quartiles";
    case Band::kRange: return "range";
  }
  return "";
}

std::string style_text(const CurveStyle& style) {
  std::string dashes = "\"-\"";
  if (!style.dashes.empty()) {
    dashes = "(0, (";
    for (const char c : style.dashes) {
      if (c == ' ') dashes += ',';
      dashes += c;
    }
    dashes += "))";
  }
  return "{\"color\": " + literal(style.color) + ", \"linestyle\": " + dashes +
         ", \"marker\": " + literal(style.marker) + "}";
}

// Returns the path of the run's metrics in the script, or the name of their copy.
std::string source_of(const Figure& figure, std::size_t r, const std::filesystem::path& folder) {
  const PlotRun& run = figure.runs[r];
  if (figure.embeds) return std::to_string(r) + " " + run.folder.filename().string();
  std::error_code error;
  const auto relative = std::filesystem::relative(run.file(), folder, error);
  return (error || relative.empty() ? std::filesystem::absolute(run.file()) : relative).string();
}

// Returns the columns that the panels show, as the text of a metrics.csv.
std::string csv_of(const Figure& figure, const PlotRun& run) {
  std::set<std::string> names;
  for (const PlotPanel& panel : figure.panels) {
    names.insert(panel.x.csv.begin(), panel.x.csv.end());
    names.insert(panel.y.csv.begin(), panel.y.csv.end());
    if (!panel.y.bound.empty()) names.insert(panel.y.bound);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  for (std::size_t row = 0; row < run.metrics.rows; ++row) {
    text += '\n';
    for (const std::string& name : names) {
      const std::vector<double>* const column = run.metrics.column(name);
      const double number = column == nullptr ? NAN : (*column)[row];
      if (name != *names.begin()) text += ',';
      if (!std::isnan(number)) text += number_text(number);
    }
  }
  return text + '\n';
}

}  // namespace

std::string draw_script(const Figure& figure, const std::filesystem::path& folder) {
  std::string script(kHead);
  script +=
      "# One curve each: its label; the metrics, f* and panels of its runs; its "
      "style.\nCURVES = [\n";
  for (std::size_t c = 0; c < figure.curves.size(); ++c) {
    script += "    (" + literal(figure.curves[c].label) + ",\n     [";
    for (const std::size_t r : figure.curves[c].runs) {
      const PlotRun& run = figure.runs[r];
      script += (r == figure.curves[c].runs.front() ? "(" : ",\n      (") +
                literal(source_of(figure, r, folder)) + ", " + number_text(run.f_star.value_or(0)) + ", " +
                literal(figure.by.empty() ? "" : value_of_key(run.keys, figure.by)) + ")";
    }
    script += "],\n     " + style_text(curve_style(c)) + "),\n";
  }
  script += "]\nPANELS = [\n";
  for (const PlotPanel& p : figure.panels) {
    script += "    {\"title\": " + literal(p.title) + ", \"value\": " + literal(p.value) +
              ",\n     \"x\": " + list_of(p.x.csv) + ", \"x_unit\": " + number_text(p.x_unit) +
              ", \"x_label\": " + literal(p.x_label) + ", \"log_x\": " + truth(p.log_x) +
              ",\n     \"y\": " + list_of(p.y.csv) + ", \"y_unit\": " + number_text(p.y_unit) +
              ", \"y_label\": " + literal(p.y_label) + ", \"log_y\": " + truth(p.log_y) +
              ", \"highest\": " + number_text(std::min(highest_shown(p), kLargest)) +
              ", \"gap\": " + truth(p.y.gap) + ", \"may_lack\": " + truth(p.y.may_lack()) + ", \"bound\": " +
              list_of(p.y.bound.empty() ? std::vector<std::string>{} : std::vector{p.y.bound}) + "},\n";
  }
  const PanelSize size = panel_size(figure, kSides);
  script += "]\nCOLUMNS = " + std::to_string(size.columns) +
            "  # panels in a row\nWIDTH = " + number_text(figure.width / kInch) +
            "  # inches; 0 for the usual width\n";
  script +=
      "BAND = " + literal(band_name(figure.band)) + "  # quartiles, range (smallest to largest) or none\n";
  script += "NOTE = " + literal(figure.note) + "\n";
  script += "METRICS = {";
  for (std::size_t r = 0; figure.embeds && r < figure.runs.size(); ++r)
    script += "\n    " + literal(source_of(figure, r, folder)) + ": \"\"\"\\\n" +
              csv_of(figure, figure.runs[r]) + "\"\"\",";
  script += "}  # by the names of the runs above, the text of a metrics.csv\n";
  return script + std::string(kTail);
}

}  // namespace gradwire
