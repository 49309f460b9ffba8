#include "experiments/plot/plot_script.h"

#include "proto/report/json.h"

namespace gradwire {
namespace {

constexpr std::string_view kHead = R"py(#!/usr/bin/env python3
# Written by gradwire; yours to change. Needs Matplotlib (Debian and Ubuntu: python3-matplotlib).
#   python3 plot.py [FILE]     FILE ends in .png, .pdf or .svg; without one: a PNG beside this script
import csv
import pathlib
import sys

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = pathlib.Path(__file__).resolve().parent

)py";

constexpr std::string_view kTail = R"py(

def column(rows, name, unit):
    return [float(row[name]) / unit if row[name] else float("nan") for row in rows]


def main():
    plt.rcParams.update({"font.size": 10, "axes.grid": True, "grid.color": "#e4e4e4", "axes.axisbelow": True})
    figure, axes = plt.subplots(1, len(PANELS), figsize=(5.1 * len(PANELS), 3.5), squeeze=False)
    for label, path, style in CURVES:
        with open(HERE / path, newline="") as file:
            rows = list(csv.DictReader(file))
        for ax, panel in zip(axes[0], PANELS):
            ax.plot(column(rows, panel["x"], panel["x_unit"]), column(rows, panel["y"], panel["y_unit"]), label=label,
                    linewidth=1.7, markersize=5.5, markerfacecolor="white", markevery=max(1, len(rows) // 6), **style)
    for ax, panel in zip(axes[0], PANELS):
        if panel["log_x"]:
            ax.set_xscale("log", nonpositive="mask")
        if panel["log_y"]:
            ax.set_yscale("log", nonpositive="mask")
        ax.set_xlabel(panel["x_label"])
        ax.set_ylabel(panel["y_label"])
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower left", bbox_to_anchor=(0.08, 0.98), ncol=3, frameon=False)
    figure.tight_layout()
    out = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().with_suffix(".png")
    figure.savefig(out, dpi=200, bbox_inches="tight")
    print(out)


if __name__ == "__main__":
    main()
)py";

std::string truth(bool value) { return value ? "True" : "False"; }

// A JSON string without surrogate escapes is a Python string.
std::string literal(std::string_view text) { return json_line(text); }

std::string number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  return text.ends_with('.') ? text + "0" : text;
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

}  // namespace

std::string draw_script(const Figure& figure, const std::filesystem::path& folder) {
  std::string script(kHead);
  script += "CURVES = [\n";
  for (std::size_t c = 0; c < figure.curves.size(); ++c) {
    const PlotCurve& curve = figure.curves[c];
    std::error_code error;
    const auto relative = std::filesystem::relative(curve.metrics, folder, error);
    const auto path = error || relative.empty() ? std::filesystem::absolute(curve.metrics) : relative;
    script += "    (" + literal(curve.label) + ", " + literal(path.string()) + ", " +
              style_text(curve_style(c)) + "),\n";
  }
  script += "]\nPANELS = [\n";
  for (const PlotPanel& p : figure.panels) {
    script += "    {\"x\": " + literal(p.x->csv) + ", \"x_unit\": " + number(p.x_unit) +
              ", \"x_label\": " + literal(p.x_label) + ", \"log_x\": " + truth(p.log_x) +
              ",\n     \"y\": " + literal(p.y->csv) + ", \"y_unit\": " + number(p.y_unit) +
              ", \"y_label\": " + literal(p.y_label) + ", \"log_y\": " + truth(p.log_y) + "},\n";
  }
  return script + "]\n" + std::string(kTail);
}

}  // namespace gradwire
