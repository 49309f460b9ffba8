// The command `gradwire plot`: makes a figure from folders of results.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plotting/plot_figure.h"

namespace gradwire {

struct PlotRequest {
  std::vector<std::filesystem::path> folders;  // folders of results, or folders that contain such folders
  std::filesystem::path out =
      {};  // plot.svg if empty, in the only folder of results or else in the working directory
  std::string x = {}, y = {};            // names of columns; empty chooses them
  std::vector<std::string> panels = {};  // "Y:X" or "Y" each; empty draws one panel of `y` and `x`
  std::string band = {};                 // auto, quartiles, range or none; empty means auto
  std::optional<double> f_star = {};     // for all runs; computed if unset
  bool tikz = false;                     // also write FILE.tex and FILE.dat
  bool csv = false;                      // also write FILE.csv, the numbers of the curves
  PlotKeys keys = {};
};

// Returns the error of a panel in the spelling of --panel, or an empty string. Knows the columns of the
// metrics.csv that this version writes.
std::string trouble_of_panel(const std::string& panel);

// Writes FILE.svg, the script FILE.py next to it, and the other requested files. Returns their paths, the SVG
// first. Throws UsageError if a folder has no results, the request cannot be met, or a file that gradwire did
// not write would be overwritten. Throws std::runtime_error if results are damaged.
std::vector<std::filesystem::path> plot_command(const PlotRequest& request);

}  // namespace gradwire
