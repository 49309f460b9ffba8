// Figures as PDF and PNG, by a program of the system.
#pragma once

#include <filesystem>
#include <string>

namespace gradwire {

// Converts the text of an SVG with rsvg-convert or Inkscape, the first that is in $PATH, and writes the file.
// Its ending, .pdf or .png, is the format; a PNG has 300 dots per inch. The file says that gradwire wrote it.
// Throws UsageError if both programs are missing, and std::runtime_error if the program fails.
void convert_svg(const std::string& svg, const std::filesystem::path& file);

}  // namespace gradwire
