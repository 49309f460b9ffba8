#include "plotting/plot_table.h"

#include <algorithm>
#include <cmath>

#include "base/value.h"
#include "plotting/plot_panel.h"
#include "report/csv_field.h"

namespace gradwire {
namespace {

// Panel size and tolerance of the table, coarser than those of the SVG. People read the numbers, or draw them
// again at the width of a column of text.
constexpr double kTablePanelWidth = 290, kTablePanelHeight = 195;  // points
constexpr double kTableColumnWidth = 7, kTolerance = 0.4;          // points

std::string table_cell(double value) { return rounded_text(value, 5); }

// Returns the cells of the band at x; they are empty without a band.
std::string band_at(const Series& series, double x) {
  if (series.low.empty()) return ",,";
  const auto near = std::lower_bound(series.x.begin(), series.x.end(), x * (1 - 1e-9));
  const auto k =
      std::min<std::size_t>(static_cast<std::size_t>(near - series.x.begin()), series.low.size() - 1);
  return "," + table_cell(series.low[k]) + "," + table_cell(series.high[k]);
}

std::string name_of(const PlotPanel& panel) {
  return panel.title + (panel.title.empty() ? "" : ", ") + panel.y.name + ":" + panel.x.name;
}

}  // namespace

std::string draw_table(const Figure& figure) {
  std::string text = std::string(kTableHeader) + "\n";
  for (const PlotPanel& panel : figure.panels) {
    const PanelLayout layout(panel, {0, 0, kTablePanelWidth, kTablePanelHeight});
    for (std::size_t c = 0; c < figure.curves.size(); ++c)
      for (const auto& piece : layout.pieces(panel.series[c]))
        for (const Point& p : drop_straight(thin_out(piece, kTableColumnWidth), kTolerance)) {
          const double x = layout.x_at(p.x);
          text += csv_field(name_of(panel)) + "," + csv_field(figure.curves[c].label) + "," + table_cell(x) +
                  "," + table_cell(layout.y_at(p.y)) + band_at(panel.series[c], x) + "\n";
        }
  }
  return text;
}

}  // namespace gradwire
