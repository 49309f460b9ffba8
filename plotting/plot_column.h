// What can stand on an axis: columns of metrics.csv, their sums, and f - f*.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradwire {

struct PlotColumn {
  std::string name;                    // as --x, --y and --panel spell it
  std::vector<std::string> csv;        // columns of metrics.csv, to be added up
  std::string label;                   // with {} where the unit goes, if it has one
  std::string tex;                     // the same for LaTeX
  bool bytes = false;                  // shown in kB, MB, ...
  bool gap = false;                    // less f*
  std::vector<std::string> also = {};  // other names that people try
  std::string bound = {};              // column of metrics.csv that is drawn beside it, thin and dashed

  // Rows may have no number there, and then are no points.
  bool may_lack() const { return csv.front() == "accuracy" || csv.front().starts_with("lyapunov"); }
};

std::span<const PlotColumn> x_columns();
std::span<const PlotColumn> y_columns();
// Null: no such column. Knows columns by other names, too.
const PlotColumn* find_column(std::span<const PlotColumn> columns, std::string_view name);
// A column of metrics.csv that is in neither list, by its name there.
PlotColumn other_column(const std::string& csv);

// Text of a label in LaTeX.
std::string tex_escape(std::string_view text);

}  // namespace gradwire
