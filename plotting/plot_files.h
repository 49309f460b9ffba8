// The files of a figure.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plotting/plot_figure.h"

namespace gradwire {

// Throws UsageError about `option` unless the ending is that of a format: .svg, .pdf, .png, .tex, .csv or
// .py.
void check_format(const std::string& option, const std::filesystem::path& file);

// Writes the figure in the format of `out`: an SVG with a script next to it, a PDF or PNG, a page for LaTeX
// with its numbers, a table, or the script alone. With `tikz` and `csv`, also writes those formats next to
// it. Returns the files, that of `out` first. Throws UsageError if it would replace a file that gradwire did
// not write.
std::vector<std::filesystem::path> write_figure(const Figure& figure, const std::filesystem::path& out,
                                                bool tikz, bool csv);

}  // namespace gradwire
