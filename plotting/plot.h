// The command `gradwire plot`: makes a figure from folders of results.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "plotting/plot_figure.h"

namespace gradwire {

struct PlotRequest {
  std::vector<std::filesystem::path> folders =
      {};  // folders of results, or folders that contain such folders
  // If empty, plot.svg: in the folder of results if there is only one, else in the working directory. Its
  // ending is the format: .svg, .pdf, .png, .tex, .csv or .py.
  std::filesystem::path out = {};
  std::string width = {};                // as in "234pt"; empty for the usual width
  std::vector<std::string> labels = {};  // "DIR=TEXT" each: the label of the curve with the runs in DIR
  std::string x = {}, y = {};            // column names; chosen automatically if empty
  std::vector<std::string> panels = {};  // "Y:X" or "Y" each; if empty, the panels follow from `y` and `x`
  std::string band = {};                 // auto, quartiles, range or none; empty means auto
  std::optional<double> f_star = {};     // f* of all runs; computed if unset
  bool tikz = false;                     // also write FILE.tex and FILE.dat
  bool csv = false;                      // also write FILE.csv, the numbers of the curves
  bool embeds = false;                   // the script has the numbers, and does not read the folders
  bool all = false;                      // also draw the runs of a sweep that are not in its best.csv
  Log log = {};
  PlotKeys keys = {};
};

// Returns the error in a panel that is written as for --panel. Empty if there is none. Knows only the columns
// that this version writes to metrics.csv.
std::string trouble_of_panel(const std::string& panel);

// Writes the figure, and next to FILE.svg the script FILE.py, and the other requested files. Returns their
// paths, the figure first. Throws UsageError if a folder has no results, the request cannot be met, or a file
// that gradwire did not write would be overwritten. Throws std::runtime_error if results are damaged, or if a
// program that converts the figure fails.
std::vector<std::filesystem::path> plot_command(const PlotRequest& request);

}  // namespace gradwire
