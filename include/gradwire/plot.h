// Figures of results (docs/reference/plots.md).
//
//   gradwire::plot({"results/gd", "results/ef21"}, "figure.svg", {.x = "bits"});
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradwire/bad_input.h"
#include "gradwire/version.h"

namespace gradwire {

// Members that are not set are chosen from the results.
struct PlotOptions {
  std::string x = {}, y = {};            // columns, as in "bits" and "grad_norm_sq"
  std::vector<std::string> panels = {};  // "Y:X" each, in place of x and y
  std::string by = {};                   // a key: separate panels for each of its values
  // Labels of curves, by the folder of one of their runs.
  std::vector<std::pair<std::filesystem::path, std::string>> labels = {};
  std::string band = {};              // of several seeds: "quartiles", "range" or "none"
  std::string width = {};             // of the page, as in "234pt"
  std::optional<double> f_star = {};  // f* of all runs; else it is computed for gaps
  bool all = false;                   // also the runs of a sweep that are not among its best
  bool embeds = false;                // a script has the numbers, and does not read the folders
};

// Draws the results in `folders`, or in the folders below them (of a sweep: its best runs), to `out`: .svg,
// .pdf, .png, .tex, .csv, or .py (a Matplotlib script). Returns the files that it wrote, the figure first;
// next to an .svg, a script. Throws BadInput if a folder has no results or a column is unknown, and
// std::runtime_error if a program that converts the figure fails.
GRADWIRE_API std::vector<std::filesystem::path> plot(const std::vector<std::filesystem::path>& folders,
                                                     const std::filesystem::path& out,
                                                     const PlotOptions& options = {});

}  // namespace gradwire
