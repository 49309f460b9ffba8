// Numbers of a figure, for other programs.
#pragma once

#include <string>
#include <string_view>

#include "plotting/plot_figure.h"

namespace gradwire {

inline constexpr std::string_view kTableHeader = "panel,curve,x,y,low,high";

// Returns CSV with one line per point: panel, curve, x, y, and the ends of the band. A curve of one run has
// no band. Points are thinned to what is visible at the size of the SVG, and have five digits.
std::string draw_table(const Figure& figure);

}  // namespace gradwire
