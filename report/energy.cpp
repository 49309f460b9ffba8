#include "report/energy.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/whole_file.h"

namespace gradwire {
namespace {

constexpr double kJoulesOfMicrojoule = 1e-6;
constexpr double kPowerSeconds = 0.1;                 // between two readings of power
constexpr int kMostDevices = 64, kMostChannels = 16;  // that are looked for

// Reads the number in a small file.
std::optional<std::uint64_t> number_in(int file) {
  std::array<char, 32> text;
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  if (size <= 0) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + size, value);
  const bool is_whole = end == text.data() + size || *end == '\n';
  return error == std::errc() && is_whole ? std::optional(value) : std::nullopt;
}

// Returns the path that the format describes.
[[gnu::format(printf, 1, 2)]] std::string path(const char* format, ...) {
  std::array<char, 300> text;
  va_list values;
  va_start(values, format);
  std::vsnprintf(text.data(), text.size(), format, values);
  va_end(values);
  return text.data();
}

// Returns the first line of a file, or "" if it cannot be read.
std::string first_line(const std::string& file) {
  const std::string text = whole_file(file).value_or("");
  return text.substr(0, std::min<std::size_t>(text.find('\n'), 64));
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

EnergyMeter::EnergyMeter(const EnergyFolders& folders, double seconds, Clock clock)
    : clock_(clock ? std::move(clock) : steady_seconds), read_at_(clock_()) {
  find_zones(folders.powercap);
  if (sources_.empty() && trouble_.empty()) find_sensors(folders.hwmon);
  if (sources_.empty() && trouble_.empty())
    trouble_ =
        "cannot measure energy: /sys/class/powercap has no energy counters (RAPL), and /sys/class/hwmon no "
        "sensors of energy or power; virtual machines and many processors lack them";
  if (sources_.empty() || seconds <= 0) return;
  for (const Source& source : sources_)
    if (source.is_power) seconds = std::min(seconds, kPowerSeconds);
  reader_ = std::thread([this, seconds] {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return is_over_; }))
      read_sources();
  });
}

EnergyMeter::~EnergyMeter() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_all();
  if (reader_.joinable()) reader_.join();
  for (const Source& source : sources_) ::close(source.file);
}

// Opens a file with a number. The error says what is wrong with it.
Result<EnergyMeter::Source> EnergyMeter::open_source(Kind kind, const std::string& file) {
  const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0)
    return Error{path("%s: %s%s%s", file.c_str(), std::strerror(errno),
                      errno == EACCES ? "; as root: chmod a+r " : "", errno == EACCES ? file.c_str() : "")};
  const std::optional<std::uint64_t> value = number_in(opened);
  if (value) return Source{.kind = kind, .file = opened, .last = *value};
  ::close(opened);
  return Error{file + ": does not contain a number"};
}

void EnergyMeter::add_trouble(const std::string& beginning, const std::string& what) {
  trouble_ += (trouble_.empty() ? beginning : "; " + beginning) + what;
}

// Finds the RAPL counters: zone N is a processor or the whole machine, and zone N:M a part of it. The zones
// of intel-rapl-mmio are a second interface to the same counters.
void EnergyMeter::find_zones(const std::string& powercap) {
  std::array<std::vector<std::string>, kBoard> zones;
  const auto see = [&](const std::string& zone) {
    const std::string name = first_line(zone + "/name");
    if (name.starts_with("package")) zones[kPackage].push_back(zone);
    if (name == "core") zones[kCore].push_back(zone);
    if (name == "dram") zones[kMemory].push_back(zone);
    return !name.empty();
  };
  for (int n = 0; n < kMostDevices; ++n) {
    const std::string zone = path("%s/intel-rapl:%d", powercap.c_str(), n);
    if (!see(zone)) continue;
    for (int m = 0; m < kMostChannels; ++m) see(path("%s:%d", zone.c_str(), m));
  }
  for (const Kind kind : {kPackage, kCore, kMemory}) open_zones(kind, zones[kind]);
}

// Opens the counters of a kind. Opens none if one of them cannot be read, because the sum would be wrong.
void EnergyMeter::open_zones(Kind kind, const std::vector<std::string>& zones) {
  constexpr std::array<const char*, kBoard> kNames = {"packages", "cores", "memory"};
  const std::size_t before = sources_.size();
  for (const std::string& zone : zones) {
    Result<Source> source = open_source(kind, zone + "/energy_uj");
    if (source) {
      const std::string range = first_line(zone + "/max_energy_range_uj");
      std::from_chars(range.data(), range.data() + range.size(), source->range);
      sources_.push_back(std::move(*source));
      continue;
    }
    add_trouble("the energy of " + std::string(kNames[kind]) + " is not measured: ", source.error().message);
    for (; sources_.size() > before; sources_.pop_back()) ::close(sources_.back().file);
    return;
  }
}

// Finds the sensors of boards: the energy counters of a device, or if it has none, its sensors of power.
void EnergyMeter::find_sensors(const std::string& hwmon) {
  for (int n = 0; n < kMostDevices; ++n) {
    const std::string device = path("%s/hwmon%d", hwmon.c_str(), n);
    bool has_energy = false;
    for (const char* const quantity : {"energy", "power"}) {
      for (int k = 1; k <= kMostChannels && !(has_energy && *quantity == 'p'); ++k) {
        const std::string file = path("%s/%s%d_input", device.c_str(), quantity, k);
        if (::access(file.c_str(), F_OK) != 0) continue;
        Result<Source> source = open_source(kBoard, file);
        if (!source) {
          add_trouble("a sensor is not read: ", source.error().message);
          continue;
        }
        source->is_power = *quantity == 'p';
        has_energy = has_energy || !source->is_power;
        const std::string label = first_line(path("%s/%s%d_label", device.c_str(), quantity, k));
        const std::string name = first_line(device + "/name");
        source->name = label.empty() ? path("%s %s%d", name.c_str(), quantity, k) : name + " " + label;
        sources_.push_back(std::move(*source));
      }
    }
  }
}

// Adds what was used since the last call. A file that can no longer be read adds nothing. Power is taken as
// the mean of two readings, for the time between them. REQUIRES: the mutex is held.
void EnergyMeter::read_sources() {
  const double now = clock_(), passed = std::max(0.0, now - std::exchange(read_at_, now));
  for (Source& source : sources_) {
    const std::optional<std::uint64_t> value = number_in(source.file);
    if (!value) continue;
    const std::uint64_t last = std::exchange(source.last, *value);
    if (source.is_power) {
      source.used_uj += (static_cast<double>(last) + static_cast<double>(*value)) / 2 * passed;
    } else if (*value >= last) {
      source.used_uj += static_cast<double>(*value - last);
    } else {
      // The counter overflowed. If its range is not known, at least its present value was used.
      const std::uint64_t rest = source.range >= last ? source.range - last : 0;
      source.used_uj += static_cast<double>(rest + *value);
    }
  }
}

Energy EnergyMeter::read() {
  const std::lock_guard lock(mutex_);
  read_sources();
  Energy energy;
  for (const Source& source : sources_) {
    const double joules = kJoulesOfMicrojoule * source.used_uj;
    switch (source.kind) {
      case kPackage: energy.package = energy.package.value_or(0) + joules; break;
      case kCore: energy.core = energy.core.value_or(0) + joules; break;
      case kMemory: energy.memory = energy.memory.value_or(0) + joules; break;
      case kBoard:
        if (energy.board && *energy.board >= joules) break;
        energy.board = joules;
        energy.board_sensor = source.name;
    }
  }
  return energy;
}

std::string energy_text(const Energy& energy) {
  std::string text;
  const auto add = [&](const std::string& name, const std::optional<double>& joules) {
    if (!joules) return;
    std::array<char, 32> number;
    std::snprintf(number.data(), number.size(), " %.4g J", *joules);
    text += (text.empty() ? "" : ", ") + name + number.data();
  };
  add("package", energy.package);
  add("core", energy.core);
  add("memory", energy.memory);
  add("board (" + energy.board_sensor + ")", energy.board);
  return text;
}

}  // namespace gradwire
