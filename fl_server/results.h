// What a run leaves behind (docs/results.md): config.toml, metrics.csv, model.bin, summary.json.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fl_server/round_loop.h"
#include "proto/disk.h"
#include "proto/journal.h"

namespace gradwire {

// Readers see the old contents or the new ones, never a part; after the return the new ones survive a loss of
// power. Throws std::runtime_error.
void write_whole(const std::filesystem::path& file, std::string_view bytes);
void write_whole(Disk& disk, const std::string& name, std::string_view bytes);

// metrics.csv, one line per record, written at once so that a reader sees whole lines. With kPower a record
// is on the disk when write() returns, else after sync(): a run that goes on after its round cannot evaluate
// it again.
class MetricsFile {
 public:
  // Keeps the lines that an earlier process wrote for rounds before `first_round`. If the file has the header
  // of another version, its lines are converted, and the old file is kept as set_aside(). Throws
  // std::runtime_error.
  explicit MetricsFile(const std::filesystem::path& file, std::uint32_t first_round = 0,
                       Durability durability = Durability::kProcess);
  MetricsFile(std::shared_ptr<Disk> disk, std::string name, std::uint32_t first_round, Durability durability);
  void write(const RoundRecord& record);
  std::optional<double> loss_at_start() const { return loss_at_start_; }  // of row 0, where there is one
  const std::optional<RoundRecord>& last() const { return last_; }        // row of the file
  // Another thread may call it beside write().
  Status sync() { return disk_->sync(name_); }
  const std::string& set_aside() const { return set_aside_; }  // a name; empty: nothing was

 private:
  const std::shared_ptr<Disk> disk_;
  const std::string name_;
  const Durability durability_;
  std::optional<double> loss_at_start_;
  std::optional<RoundRecord> last_;
  std::string set_aside_;
};

// The round of the last whole line of a metrics.csv; nothing: there is none.
std::optional<std::uint32_t> last_round_of_metrics(const std::filesystem::path& file);

// The line of a record without its newline; 17 significant digits.
std::string metrics_line(const RoundRecord& record);
inline constexpr std::string_view kMetricsHeader =
    "round,loss,grad_norm_sq,accuracy,bits_up,bits_down,bytes_up,bytes_down,grad_calls,replies,seconds,"
    "bits_up_paper,bits_down_paper";

// model.bin: 8 bytes magic "GWMODEL1", u32 bytes per number (4 or 8), u32 zero, u64 d, d numbers, u32 CRC32C
// of all before.
inline constexpr std::string_view kModelMagic = "GWMODEL1";
template <class Real>
void write_model(const std::filesystem::path& file, std::span<const Real> x);
// Any precision is converted. Throws std::runtime_error (one line).
std::vector<double> read_model(const std::filesystem::path& file);

}  // namespace gradwire
