// Helpers for the text of an SVG.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plotting/plot_thin.h"

namespace gradwire::svg {

// Font sizes in points.
inline constexpr double kFont = 11.5, kSmallFont = 10.5;

std::string num(double value);  // at most two decimals
std::string escape(std::string_view text);
// Turns "^{...}" into raised text.
std::string raise(std::string_view text);
// Returns an estimate of the width of text in a sans-serif font of this size. It is more often too wide than
// too narrow.
double text_width(std::string_view text, double font);
// Cuts text to a width. Marks the cut with an ellipsis.
std::string fit(std::string_view text, double font, double width);
// Cuts a label of a curve before its last part, after a comma, which differs between curves.
std::string fit_label(std::string_view text, double font, double width);

std::string line(Point a, Point b, std::string_view attributes);
std::string text_at(Point p, std::string_view anchor, double size, const std::string& content,
                    std::string_view more = "");

// Returns a line through the points as path data, in whole tenths of a point. Empty if no line remains.
std::string path_data(const std::vector<Point>& points);
// Returns a marker as path data in points, relative after its first move. `marker` is as in CurveStyle.
std::string marker_data(std::string_view marker, Point at);

}  // namespace gradwire::svg
