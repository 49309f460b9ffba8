// A figure as SVG: white background, fonts that stay readable at the width of a column, and a legend above
// the panels.
#pragma once

#include <string>

#include "plotting/plot_figure.h"

namespace gradwire {

// Returns the SVG. Equal figures give equal text. REQUIRES: at least one panel.
std::string draw_svg(const Figure& figure);

}  // namespace gradwire
