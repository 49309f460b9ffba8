// The energy of processors and memory, from their RAPL counters, which Linux shows in /sys/class/powercap
// (Documentation/power/powercap/powercap.rst of its sources). The counters measure the whole machine, not
// only this process.
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

// Energy in joules. A member is empty if it is not measured.
struct Energy {
  std::optional<double> package;  // all processors, with everything on their chips
  std::optional<double> core;     // only their cores; part of `package`
  std::optional<double> memory;   // set if the machine has counters for it
};

// A meter that measures from its construction on. It never throws because of the contents of `root`.
class EnergyMeter {
 public:
  // Starts a thread that reads the counters every `seconds`, because they overflow after minutes of full
  // load. Starts no thread if `seconds` is 0.
  explicit EnergyMeter(const std::filesystem::path& root = kPowercap, double seconds = 20);
  ~EnergyMeter();

  // Returns the energy used since the construction.
  Energy read();
  // Returns one line on what is not measured, and why. Empty if all counters of the machine are read.
  const std::string& trouble() const { return trouble_; }

 private:
  enum Kind : std::size_t { kPackage, kCore, kMemory, kKinds };
  struct EnergyCounter {
    Kind kind;
    int file;             // open; each read gives the present value, in microjoules
    std::uint64_t range;  // the largest value, from which the counter returns to 0; 0 if not known
    std::uint64_t last;
  };
  void find_counters(const std::filesystem::path& root);
  void open_counters(Kind kind, const std::vector<std::filesystem::path>& zones);
  void read_counters();

  std::vector<EnergyCounter> counters_;
  std::array<std::uint64_t, kKinds> used_uj_{};  // microjoules
  std::array<bool, kKinds> is_measured_{};
  std::string trouble_;
  std::mutex mutex_;  // guards used_uj_ and counters_
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread reader_;
};

// Returns "package 12.3 J, core 10.1 J", or "" if nothing is measured.
std::string energy_text(const Energy& energy);

}  // namespace gradwire
