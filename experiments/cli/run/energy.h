// The energy that processors and memory use, as their counters say: RAPL, which Linux shows below
// /sys/class/powercap (Documentation/power/powercap/powercap.rst of its sources). Of the whole machine, not
// of this process alone.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace gradwire {

inline constexpr const char* kPowercap = "/sys/class/powercap";

// In joules; empty: not measured.
struct Energy {
  std::optional<double> package;  // of all processors, what lies on the chip with them included
  std::optional<double> core;     // of their cores alone; part of `package`
  std::optional<double> memory;   // where the machine has counters for it
};

// Measures from its construction on. Never throws for what it finds in `root`.
class EnergyMeter {
 public:
  // Counters overflow, after minutes of full load at the earliest: a thread reads them every `seconds`; 0: no
  // thread.
  explicit EnergyMeter(const std::filesystem::path& root = kPowercap, double seconds = 20);
  ~EnergyMeter();

  // Used since the construction.
  Energy read();
  // One line on what is not measured, and why; empty: all that the machine has counters for is measured.
  const std::string& trouble() const { return trouble_; }

 private:
  enum Kind : std::size_t { kPackage, kCore, kMemory, kKinds };
  struct EnergyCounter {
    Kind kind;
    int file;             // open; each read gives the present value, in microjoules
    std::uint64_t range;  // the largest value, after which 0 follows; 0: not known
    std::uint64_t last;
  };
  void find_counters(const std::filesystem::path& root);
  void open_counters(Kind kind, const std::vector<std::filesystem::path>& zones);
  void read_counters();

  std::vector<EnergyCounter> counters_;
  std::array<std::uint64_t, kKinds> used_uj_{};  // microjoules
  std::array<bool, kKinds> is_measured_{};
  std::string trouble_;
  std::mutex mutex_;  // of used_uj_ and counters_
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread reader_;
};

// "package 12.3 J, core 10.1 J"; empty where nothing is measured.
std::string energy_text(const Energy& energy);

}  // namespace gradwire
