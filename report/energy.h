// The energy that a machine uses, as Linux shows it: the RAPL counters of processors and memory in
// /sys/class/powercap (Documentation/power/powercap/powercap.rst of its sources), or where these are absent
// the sensors of a board in /sys/class/hwmon (Documentation/hwmon/sysfs-interface.rst). Both measure the
// whole machine, not only this process.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"

namespace gradwire {

struct EnergyFolders {
  std::string powercap = "/sys/class/powercap";
  std::string hwmon = "/sys/class/hwmon";
};

// Energy in joules. A member is empty if it is not measured.
struct Energy {
  std::optional<double> package;  // all processors, with everything on their chips
  std::optional<double> core;     // only their cores; part of `package`
  std::optional<double> memory;   // set if the machine has counters for it
  // The sensor of hwmon that counted most. The others are not added, because a board often has one sensor for
  // its whole supply, and more for parts of it.
  std::optional<double> board;
  std::string board_sensor{};  // its name, as in "ina226 power1"

  bool is_measured() const { return package || core || memory || board; }
};

// A meter that measures from its construction on. It never throws because of the contents of the folders.
class EnergyMeter {
 public:
  // Returns seconds from a fixed moment on.
  using Clock = std::function<double()>;

  // Starts a thread that reads the counters every `seconds`, because they overflow after minutes of full
  // load, and sensors of power ten times a second. Starts no thread if `seconds` is 0; then only read()
  // reads.
  explicit EnergyMeter(const EnergyFolders& folders = {}, double seconds = 20, Clock clock = {});
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  // Returns the energy used since the construction.
  Energy read();
  // Returns one line on what is not measured, and why. Empty if all counters of the machine are read.
  const std::string& trouble() const { return trouble_; }

 private:
  enum Kind : std::size_t { kPackage, kCore, kMemory, kBoard };
  // An energy counter in microjoules, or a sensor of power in microwatts.
  struct Source {
    Kind kind;
    int file;  // open; each read gives the present value
    bool is_power = false;
    std::uint64_t range = 0;  // the largest value, from which a counter returns to 0; 0 if not known
    std::uint64_t last = 0;
    std::string name{};  // of a sensor of hwmon
    double used_uj = 0;  // since the construction
  };
  void find_zones(const std::string& powercap);
  void find_sensors(const std::string& hwmon);
  void open_zones(Kind kind, const std::vector<std::string>& zones);
  static Result<Source> open_source(Kind kind, const std::string& file);
  void add_trouble(const std::string& beginning, const std::string& what);
  void read_sources();

  Clock clock_;
  std::vector<Source> sources_;
  double read_at_ = 0;
  std::string trouble_;
  std::mutex mutex_;  // guards sources_ and read_at_
  std::condition_variable ended_;
  bool is_over_ = false;
  std::thread reader_;
};

// Returns "package 12.3 J, core 10.1 J", or "" if nothing is measured.
std::string energy_text(const Energy& energy);

}  // namespace gradwire
