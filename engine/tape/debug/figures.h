// Figures as Python scripts that need only Matplotlib: python3 SCRIPT.py FIGURE.png (or .svg, .pdf). The
// script holds the numbers, so it can be kept, changed and run anywhere.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gradwire {

struct FunctionFigure {
  struct Curve {
    std::string label;
    std::vector<double> y;  // as long as x; nan leaves a gap
  };
  std::string title, x_label, y_label;
  std::vector<double> x;
  std::vector<Curve> curves;
};

struct HeatMapFigure {
  std::string title, x_label, y_label;
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;                        // shape (rows, columns), row by row, the first row on
                                                     // top
  std::vector<std::string> row_names, column_names;  // may be empty
  bool annotated = false;                            // writes the value into each cell
};

// Return the script. They throw std::logic_error if lengths do not fit.
std::string figure_script(const FunctionFigure& figure);
std::string figure_script(const HeatMapFigure& figure);

}  // namespace gradwire
