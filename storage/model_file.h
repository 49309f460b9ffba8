#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/array_format.h"
#include "base/result.h"
#include "storage/disk.h"

namespace gradwire {

// Writes a model.bin: 8 bytes magic "GWMODEL1", u32 bytes per number (4 or 8), u32 zero, u64 d, d numbers,
// u32 CRC32C of all bytes before it.
template <class Real>
void write_model(const std::filesystem::path& file, std::span<const Real> x);
template <class Real>
void write_model(Disk& disk, const std::string& name, std::span<const Real> x);
// Reads a model.bin, or a file of save_numbers() (engine/files/number_file.h) or of numpy.save. Throws
// std::runtime_error (one line).
std::vector<double> read_model(const std::filesystem::path& file);
// Converts the numbers of such a file to double. Fails if their type is wider. The error does not name the
// file.
Result<std::vector<double>> model_numbers(const NumbersView& view);

}  // namespace gradwire
