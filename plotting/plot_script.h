// A figure as a Python script for Matplotlib, to edit by hand and to make PNG and PDF files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "plotting/plot_figure.h"

namespace gradwire {

// The beginning of a line of every script.
inline constexpr std::string_view kScriptMark = "# Written by gradwire";

// Returns the script, which will be stored in `folder`. If `figure.embeds`, the script holds the numbers of
// the runs. Otherwise it reads each metrics.csv, by its path relative to `folder`.
std::string draw_script(const Figure& figure, const std::filesystem::path& folder);

}  // namespace gradwire
