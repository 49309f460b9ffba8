// A figure as a Python script for Matplotlib, to edit by hand and to make PNG and PDF files.
#pragma once

#include <filesystem>
#include <string>

#include "plotting/plot_figure.h"

namespace gradwire {

// Returns the script. It has the numbers of the runs if `figure.embeds`. Otherwise it reads the metrics.csv
// of each run, by a path relative to `folder`, in which the script will be stored.
std::string draw_script(const Figure& figure, const std::filesystem::path& folder);

}  // namespace gradwire
