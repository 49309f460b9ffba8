// energy.csv: the energy that a run used until each round (docs/reference/results.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "report/energy.h"
#include "report/summary.h"

namespace gradwire {

class EnergyLog {
 public:
  // Measures from now on. Writes nothing if nothing is measured.
  EnergyLog(const EnergyFolders& folders, const std::filesystem::path& file);

  void round(std::uint32_t done);  // writes a line after that round
  EnergyUse use();                 // returns the energy used until now
  const std::string& trouble() const { return meter_.trouble(); }

 private:
  using Clock = std::chrono::steady_clock;

  EnergyMeter meter_;
  std::ofstream file_;  // not open if nothing is measured
  Clock::time_point started_ = Clock::now();
};

}  // namespace gradwire
