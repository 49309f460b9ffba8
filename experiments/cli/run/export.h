// gradwire export: a model as numbers for other programs.
#pragma once

#include <filesystem>
#include <string>

namespace gradwire {

// Writes the numbers of `model` (a model.bin, a .npy, or a file of save_numbers()), fp32 or fp64 as they are
// there, to `out`: by its ending .npy for numpy.load, or .raw, the numbers alone, lowest byte first. What was
// at `out` stays until the new file is whole. Returns a line: how many numbers of which type. Throws
// UsageError, std::runtime_error (one line).
std::string export_model(const std::filesystem::path& model, const std::filesystem::path& out);

}  // namespace gradwire
