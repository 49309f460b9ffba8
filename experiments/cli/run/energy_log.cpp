#include "experiments/cli/run/energy_log.h"

#include <array>
#include <cstdio>
#include <optional>
#include <string>

namespace gradwire {
namespace {

std::string cell(const std::optional<double>& joules) {
  if (!joules) return "";
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.6f", *joules);
  return text.data();
}

}  // namespace

EnergyLog::EnergyLog(const EnergyFolders& folders, const std::filesystem::path& file) : meter_(folders) {
  if (!meter_.read().is_measured()) return;
  file_.open(file, std::ios::binary);
  file_ << "round,seconds,package_joules,core_joules,memory_joules,board_joules\n";
}

void EnergyLog::round(std::uint32_t done) {
  if (!file_.is_open()) return;
  const Energy now = meter_.read();
  const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  file_ << done << ',' << cell(seconds) << ',' << cell(now.package) << ',' << cell(now.core) << ','
        << cell(now.memory) << ',' << cell(now.board) << '\n';
}

EnergyUse EnergyLog::use() {
  std::string trouble = meter_.trouble();
  if (file_.is_open() && !file_.flush()) trouble = "energy.csv could not be written completely";
  return {meter_.read(), trouble};
}

}  // namespace gradwire
