// metrics.csv: a row for every evaluated round (docs/results.md).
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
  const Lull& lull() const { return lull_; }                              // of the lines that were kept
  // Another thread may call it beside write().
  Status sync() { return disk_->sync(name_); }
  const std::string& set_aside() const { return set_aside_; }  // a name; empty: nothing was

 private:
  const std::shared_ptr<Disk> disk_;
  const std::string name_;
  const Durability durability_;
  std::optional<double> loss_at_start_;
  std::optional<RoundRecord> last_;
  Lull lull_;
  std::string set_aside_;
};

// The round of the last whole line of a metrics.csv; nothing: there is none.
std::optional<std::uint32_t> last_round_of_metrics(const std::filesystem::path& file);

}  // namespace gradwire
