#include "plotting/plot_width.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "plotting/svg_text.h"
#include "report/results_dir.h"

namespace gradwire {
namespace {

constexpr double kInch = 72, kTexInch = 72.27, kCentimeter = kInch / 2.54;
constexpr double kNarrowest = 100, kWidest = 4000;  // points
constexpr double kPrintedFont = 8;                  // points of labels in a figure of a given width
constexpr double kNarrowPanel = 160;                // panels of a row are not narrower
constexpr double kLowestPanel = 120;

}  // namespace

double parse_width(const std::string& text) {
  constexpr auto kUnits = std::to_array<std::pair<std::string_view, double>>(
      {{"pt", kInch / kTexInch}, {"cm", kCentimeter}, {"mm", kCentimeter / 10}, {"in", kInch}});
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  for (const auto& [unit, size] : kUnits)
    if (error == std::errc() && std::string_view(end, text.data() + text.size()) == unit) {
      if (value * size >= kNarrowest && value * size <= kWidest) return value * size;
      throw UsageError("--width " + text + ": a figure is between 100pt and 4000pt wide");
    }
  throw UsageError("--width " + text + ": write a number and pt, cm, mm or in, as in 234pt or 8.5cm");
}

PanelSize panel_size(const Figure& figure, double sides) {
  PanelSize size;
  size.columns = figure.columns;
  if (figure.width == 0) return size;
  size.scale = kPrintedFont / svg::kFont;
  const double whole = figure.width / size.scale;
  const auto width = [&] { return whole / static_cast<double>(size.columns) - sides; };
  while (size.columns > 1 && width() < kNarrowPanel) --size.columns;
  const double shape = size.height / size.width;
  size.width = width();
  size.height = std::max(kLowestPanel, size.width * shape);
  return size;
}

}  // namespace gradwire
