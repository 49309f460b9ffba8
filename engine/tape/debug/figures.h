// Figures as Python scripts that need nothing but Matplotlib: python3 SCRIPT.py FIGURE.png (or .svg, .pdf).
// The numbers are in the script, so that it can be kept, changed and run anywhere.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gradwire {

struct FunctionFigure {
  struct Curve {
    std::string label;
    std::vector<double> y;  // as many as x; nan leaves a gap
  };
  std::string title, x_label, y_label;
  std::vector<double> x;
  std::vector<Curve> curves;
};

struct HeatMapFigure {
  std::string title, x_label, y_label;
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;                        // shape (rows, columns), row by row, the first on top
  std::vector<std::string> row_names, column_names;  // empty: none
  bool annotated = false;                            // each cell has its number
};

// Both throw std::logic_error for lengths that do not fit.
std::string figure_script(const FunctionFigure& figure);
std::string figure_script(const HeatMapFigure& figure);

}  // namespace gradwire
