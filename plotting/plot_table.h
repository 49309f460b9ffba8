// The numbers of a figure, for other programs.
#pragma once

#include <string>
#include <string_view>

#include "plotting/plot_figure.h"

namespace gradwire {

inline constexpr std::string_view kTableHeader = "panel,curve,x,y,low,high";

// CSV, a line for each point: panel, curve, x, y, and the ends of the band where there is one (a median of
// several seeds). Points are thinned to what the eye sees at the size of the SVG, and have five digits.
std::string draw_table(const Figure& figure);

}  // namespace gradwire
