// A figure as a Python script for Matplotlib: to be changed by hand, and for PNG and PDF.
#pragma once

#include <filesystem>
#include <string>

#include "plotting/plot_figure.h"

namespace gradwire {

// The script stands alone; it reads the metrics.csv of each run, whose path it holds relative to `folder`,
// where it will lie.
std::string draw_script(const Figure& figure, const std::filesystem::path& folder);

}  // namespace gradwire
