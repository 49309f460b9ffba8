// The size of a figure on the page.
#pragma once

#include <cstddef>
#include <string>

#include "plotting/plot_figure.h"

namespace gradwire {

// Reads "234pt", "8.5cm", "85mm" or "3.25in". "pt" is the point of TeX, 72.27 of which are an inch. Returns
// points of 1/72 inch. Throws UsageError.
double parse_width(const std::string& text);

// Sizes of the panels in units of the drawing, which the page shows `scale` points large.
struct PanelSize {
  double width = 290, height = 195;
  double scale = 1;  // at a given width, letters have the size that papers print
  std::size_t columns = 1;
};
// Returns the sizes of the panels of a figure. `sides` is the space left and right of each panel. A narrow
// figure has fewer panels in a row.
PanelSize panel_size(const Figure& figure, double sides);

}  // namespace gradwire
