// gradwire export: writes a model as numbers for other programs.
#pragma once

#include <filesystem>
#include <string>

namespace gradwire {

// Writes the numbers of `model` (a model.bin, a .npy, or a file of save_numbers()) to `out`, in their
// precision (fp32 or fp64). The ending of `out` decides: .npy for numpy.load, or .raw for raw little-endian
// numbers, .csv for a line with the name and the number of each parameter, or .txt for a number in each line.
// `model` may be its folder. An existing file at `out` stays until the new one is complete. Returns a line
// with the count and type of the numbers. Throws UsageError, std::runtime_error (one line).
std::string export_model(const std::filesystem::path& model, const std::filesystem::path& out);

}  // namespace gradwire
