#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace gradwire {

// model.bin: 8 bytes magic "GWMODEL1", u32 bytes per number (4 or 8), u32 zero, u64 d, d numbers, u32 CRC32C
// of all before.
inline constexpr std::string_view kModelMagic = "GWMODEL1";
template <class Real>
void write_model(const std::filesystem::path& file, std::span<const Real> x);
// Any precision is converted. Throws std::runtime_error (one line).
std::vector<double> read_model(const std::filesystem::path& file);

}  // namespace gradwire
