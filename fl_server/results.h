// What a run leaves behind (docs/results.md): config.toml, metrics.csv, model.bin, summary.json.
#pragma once

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "fl_server/round_loop.h"

namespace gradwire {

// Readers see the old contents or the new ones, never a part. Throws std::runtime_error.
void write_whole(const std::filesystem::path& file, std::string_view bytes);

// metrics.csv, one line per record, flushed so that a reader sees whole lines.
class MetricsFile {
 public:
  explicit MetricsFile(const std::filesystem::path& file);  // throws std::runtime_error
  // Goes on with a file of an earlier process: the lines of rounds before `first_round` stay.
  MetricsFile(const std::filesystem::path& file, std::uint32_t first_round);
  void write(const RoundRecord& record);

 private:
  std::ofstream out_;
};

// The line of a record without its newline; 17 significant digits.
std::string metrics_line(const RoundRecord& record);
inline constexpr std::string_view kMetricsHeader =
    "round,loss,grad_norm_sq,accuracy,bits_up,bits_down,bytes_up,bytes_down,grad_calls,replies,seconds,"
    "bits_up_paper,bits_down_paper";

// model.bin: 8 bytes magic "GWMODEL1", u32 bytes per number (4 or 8), u32 zero, u64 d, d numbers, u32 CRC32C
// of all before.
template <class Real>
void write_model(const std::filesystem::path& file, std::span<const Real> x);
// Any precision is converted. Throws std::runtime_error (one line).
std::vector<double> read_model(const std::filesystem::path& file);

}  // namespace gradwire
