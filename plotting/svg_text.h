// Pieces of SVG text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plotting/plot_thin.h"

namespace gradwire::svg {

// Fonts, in points.
inline constexpr double kFont = 11.5, kSmallFont = 10.5;

std::string num(double value);  // with two decimals at most
std::string escape(std::string_view text);
// "^{...}" becomes raised text.
std::string raise(std::string_view text);
// The width of text in a sans-serif font of this size; a little too wide rather than too narrow.
double text_width(std::string_view text, double font);
// Cut to a width, with "..." where something is left out.
std::string fit(std::string_view text, double font, double width);

std::string line(Point a, Point b, std::string_view attributes);
std::string text_at(Point p, std::string_view anchor, double size, const std::string& content,
                    std::string_view more = "");

// A line through the points as path data in tenths of a point, whole numbers; empty: none is left.
std::string path_data(const std::vector<Point>& points);
// A marker as path data in points, relative after its first move. `marker`: CurveStyle's.
std::string marker_data(std::string_view marker, Point at);

}  // namespace gradwire::svg
