// metrics.csv: one row for every evaluated round (docs/reference/results.md).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rounds/round_loop.h"
#include "storage/disk.h"
#include "storage/journal.h"

namespace gradwire {

// Writes metrics.csv, one line per record. Each line is one write, so that a reader sees whole lines. A
// record is durable when write() returns (kPower) or after sync(), because a resumed run does not evaluate
// earlier rounds again.
class MetricsFile {
 public:
  // Keeps the lines that an earlier process wrote for rounds before `first_round`. Converts the lines if the
  // header is from another version; the old file is kept as set_aside(). Throws std::runtime_error.
  explicit MetricsFile(const std::filesystem::path& file, std::uint32_t first_round = 0,
                       Durability durability = Durability::kProcess);
  MetricsFile(std::shared_ptr<Disk> disk, std::string name, std::uint32_t first_round, Durability durability);
  void write(const RoundRecord& record);
  std::optional<double> loss_at_start() const { return loss_at_start_; }  // loss in row 0, if it exists
  const std::optional<RoundRecord>& last() const { return last_; }        // last row of the file
  const Plateau& plateau() const { return plateau_; }                     // after the lines that were kept
  // Makes all lines durable. Another thread may call it while write() runs.
  Status sync() { return disk_->sync(name_); }
  // Returns the new name of an old file with another header, or "" if there was none.
  const std::string& set_aside() const { return set_aside_; }

 private:
  const std::shared_ptr<Disk> disk_;
  const std::string name_;
  const Durability durability_;
  std::optional<double> loss_at_start_;
  std::optional<RoundRecord> last_;
  Plateau plateau_;
  std::string set_aside_;
};

// Returns the round of the last whole line of a metrics.csv, or nullopt if it has none.
std::optional<std::uint32_t> last_round_of_metrics(const std::filesystem::path& file);

}  // namespace gradwire
