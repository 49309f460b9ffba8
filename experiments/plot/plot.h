// gradwire plot: from folders of results to a figure.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "experiments/plot/plot_figure.h"

namespace gradwire {

// Reads metrics.csv of each folder; labels are as short as they can be and still tell the runs apart. Throws
// UsageError when a folder holds no results, std::runtime_error when they are damaged.
std::vector<PlotCurve> load_curves(std::span<const std::filesystem::path> folders);

// Writes FILE.svg, and the script FILE.py beside it. Throws UsageError rather than overwrite a file that is
// not gradwire's.
void write_figure(const Figure& figure, const std::filesystem::path& svg);

struct PlotRequest {
  std::vector<std::filesystem::path> folders;
  std::filesystem::path out;  // empty: plot.svg in the one folder, or in the working directory
  std::string x, y;           // names of columns; empty: chosen
};
// Returns the path of the SVG.
std::filesystem::path plot_command(const PlotRequest& request);

}  // namespace gradwire
