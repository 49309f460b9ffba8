// A figure for LaTeX: a page for PGFPlots and its numbers.
#pragma once

#include <string>

#include "plotting/plot_figure.h"

namespace gradwire {

struct TikzFigure {
  // Page that compiles on its own (class standalone); from \begin{tikzpicture} on it fits any document.
  std::string tex;
  std::string dat;  // a table: the columns x and y of each panel and curve, and the outline of its band
};

// Returns the figure. Points are thinned as in the SVG. `dat_name` is the name of the table in the page.
// REQUIRES: at least one panel.
TikzFigure draw_tikz(const Figure& figure, const std::string& dat_name);

}  // namespace gradwire
