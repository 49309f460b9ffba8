// A figure for LaTeX: a page of PGFPlots, and its numbers.
#pragma once

#include <string>

#include "plotting/plot_figure.h"

namespace gradwire {

struct TikzFigure {
  std::string tex;  // compiles alone (class standalone), or goes into a document from \begin{tikzpicture} on
  std::string dat;  // a table: the columns x, y of each panel and curve, and the outline of its band
};

// Points are thinned as in the SVG. `dat_name`: of the file that the page reads. REQUIRES: at least one
// panel.
TikzFigure draw_tikz(const Figure& figure, const std::string& dat_name);

}  // namespace gradwire
