#include "engine/tape/debug/figures.h"

#include <cmath>
#include <cstdio>
#include <span>
#include <stdexcept>
#include <string_view>

#include "base/value.h"

namespace gradwire {
namespace {

constexpr std::string_view kFront = R"(#!/usr/bin/env python3
# Written by gradwire; yours to change. Needs Matplotlib: python3 THIS.py FIGURE.png
import math
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

nan, inf = float("nan"), float("inf")
)";

constexpr std::string_view kBack =
    R"(figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "figure.png", dpi=150)
)";

// Returns a Python literal.
std::string literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += std::string("\\") + c;
    } else if (static_cast<unsigned char>(c) < ' ') {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string literal(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return number_text(value);
}

template <class List>
std::string list(const List& items) {
  std::string out = "[";
  for (const auto& item : items) out += (out.size() > 1 ? ", " : "") + literal(item);
  return out + "]";
}

// Returns a Python expression for a user's text. Escapes $, because Matplotlib would read $...$ as a formula.
std::string label(const std::string& text) { return literal(text) + ".replace(\"$\", r\"\\$\")"; }

std::string labels(const std::string& title, const std::string& x, const std::string& y) {
  std::string out;
  if (!title.empty()) out += "axes.set_title(" + label(title) + ")\n";
  if (!x.empty()) out += "axes.set_xlabel(" + label(x) + ")\n";
  if (!y.empty()) out += "axes.set_ylabel(" + label(y) + ")\n";
  return out;
}

}  // namespace

std::string figure_script(const FunctionFigure& figure) {
  std::string out(kFront);
  out += "x = " + list(figure.x) + "\n";
  out += "figure, axes = plt.subplots(figsize=(6.4, 4), constrained_layout=True)\n";
  bool named = false;
  for (const FunctionFigure::Curve& curve : figure.curves) {
    if (curve.y.size() != figure.x.size())
      throw std::logic_error("a curve of " + std::to_string(curve.y.size()) + " points over " +
                             std::to_string(figure.x.size()));
    out += "axes.plot(x, " + list(curve.y);
    if (!curve.label.empty()) out += ", label=" + label(curve.label);
    out += ")\n";
    named = named || !curve.label.empty();
  }
  out += labels(figure.title, figure.x_label, figure.y_label) + "axes.grid(alpha=0.3)\n";
  if (named) out += "axes.legend()\n";
  return out + std::string(kBack);
}

std::string figure_script(const HeatMapFigure& figure) {
  if (figure.values.size() != figure.rows * figure.columns || figure.values.empty() ||
      (!figure.row_names.empty() && figure.row_names.size() != figure.rows) ||
      (!figure.column_names.empty() && figure.column_names.size() != figure.columns))
    throw std::logic_error("a heat map of " + std::to_string(figure.rows) + " x " +
                           std::to_string(figure.columns) + " cells was given " +
                           std::to_string(figure.values.size()) + " values or names that do not fit");
  std::string out(kFront);
  out += "values = [\n";
  for (std::size_t r = 0; r < figure.rows; ++r)
    out += "    " + list(std::span(figure.values).subspan(r * figure.columns, figure.columns)) + ",\n";
  out += "]\n";
  // All cells have equal size. If they hold text, the figure grows with their number.
  out += "rows, columns = len(values), len(values[0])\n";
  out += figure.annotated ? "size = (max(4, 0.7 * columns + 2), max(3, 0.5 * rows + 1.2))\n"
                          : "size = (6.4, min(12, max(2.5, 5.2 * rows / columns + 0.8)))\n";
  out += "figure, axes = plt.subplots(figsize=size, constrained_layout=True)\n";
  out += "image = axes.imshow(values, aspect=\"auto\", interpolation=\"nearest\", cmap=\"viridis\")\n";
  out += "figure.colorbar(image, ax=axes)\n";
  out += "axes.xaxis.get_major_locator().set_params(integer=True)\n";
  out += "axes.yaxis.get_major_locator().set_params(integer=True)\n";
  if (!figure.column_names.empty())
    out += "axes.set_xticks(range(columns))\naxes.set_xticklabels([t.replace(\"$\", r\"\\$\") for t in " +
           list(figure.column_names) + "])\n";
  if (!figure.row_names.empty())
    out += "axes.set_yticks(range(rows))\naxes.set_yticklabels([t.replace(\"$\", r\"\\$\") for t in " +
           list(figure.row_names) + "])\n";
  if (figure.annotated) {
    // The text is dark on bright cells, and on cells that are not finite, which are white.
    out +=
        "for r in range(rows):\n"
        "    for c in range(columns):\n"
        "        bright = not math.isfinite(values[r][c]) or image.norm(values[r][c]) > 0.6\n"
        "        axes.text(c, r, f\"{values[r][c]:.3g}\", ha=\"center\", va=\"center\",\n"
        "                  color=\"black\" if bright else \"white\", fontsize=8)\n";
  }
  out += labels(figure.title, figure.x_label, figure.y_label);
  return out + std::string(kBack);
}

}  // namespace gradwire
