// Quantities for an axis: columns of metrics.csv, their sums, and f - f*.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

struct PlotColumn {
  std::string name;              // in --x, --y and --panel
  std::vector<std::string> csv;  // columns of metrics.csv, which are added up
  std::string label;             // with {} in place of the unit, if there is one
  std::string tex;               // the label in LaTeX
  bool bytes = false;            // shown in kB, MB, ...
  bool gap = false;              // f* is subtracted
  std::string bound = {};        // column of metrics.csv that is drawn as a thin dashed line

  // Returns true if rows may lack the number; such rows have no point.
  bool may_lack() const { return csv.front() == "accuracy" || csv.front().starts_with("lyapunov"); }
};

std::span<const PlotColumn> x_columns();
std::span<const PlotColumn> y_columns();
// Returns the column of this name or alias, or null if none has it.
const PlotColumn* find_column(std::span<const PlotColumn> columns, std::string_view name);
// Returns a column for a name of metrics.csv that is in neither list.
PlotColumn other_column(const std::string& csv);

// Escapes the text of a label for LaTeX.
std::string tex_escape(std::string_view text);

}  // namespace gradwire
