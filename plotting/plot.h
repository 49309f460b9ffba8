// gradwire plot: from folders of results to a figure.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plotting/plot_figure.h"

namespace gradwire {

struct PlotRequest {
  std::vector<std::filesystem::path> folders;  // of results, or folders of such folders
  std::filesystem::path out =
      {};                      // empty: plot.svg in the one folder of results, or in the working directory
  std::string x = {}, y = {};  // names of columns; empty: chosen
  std::vector<std::string> panels = {};  // "Y:X" or "Y" each; empty: one of `y` and `x`
  std::string band = {};                 // auto, quartiles, range or none; empty: auto
  std::optional<double> f_star = {};     // for all runs, in place of what would be computed
  bool tikz = false;                     // FILE.tex and FILE.dat, too
  bool csv = false;                      // FILE.csv: the numbers of the curves
  PlotKeys keys = {};
};

// What is wrong with a panel as --panel spells it, for columns of the metrics.csv that this version writes;
// empty: nothing.
std::string trouble_of_panel(const std::string& panel);

// Writes FILE.svg, the script FILE.py beside it, and what else was asked for; returns their paths, the SVG
// first. Throws UsageError when a folder holds no results or the request cannot be met, rather than overwrite
// a file that is not gradwire's, too; std::runtime_error when results are damaged.
std::vector<std::filesystem::path> plot_command(const PlotRequest& request);

}  // namespace gradwire
