#include "experiments/cli/run/energy.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <string_view>
#include <system_error>
#include <unistd.h>

namespace gradwire {
namespace fs = std::filesystem;
namespace {

constexpr double kJoulesOfMicrojoule = 1e-6;

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

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line.substr(0, 64);
}

// Returns the range of a zone's counter, or 0 if it is not known.
std::uint64_t range_of(const fs::path& zone) {
  std::uint64_t range = 0;
  const std::string text = first_line(zone / "max_energy_range_uj");
  std::from_chars(text.data(), text.data() + text.size(), range);
  return range;
}

// Returns the RAPL zones in the order of their names. Leaves out the zones of intel-rapl-mmio, a second
// interface to the same counters.
std::vector<fs::path> zones_in(const fs::path& root) {
  std::vector<fs::path> zones;
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with("intel-rapl:")) zones.push_back(entry->path());
  std::sort(zones.begin(), zones.end());
  return zones;
}

}  // namespace

EnergyMeter::EnergyMeter(const fs::path& root, double seconds) {
  find_counters(root);
  if (counters_.empty() || seconds <= 0) return;
  reader_ = std::thread([this, seconds] {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return is_over_; }))
      read_counters();
  });
}

EnergyMeter::~EnergyMeter() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_all();
  if (reader_.joinable()) reader_.join();
  for (const EnergyCounter& counter : counters_) ::close(counter.file);
}

void EnergyMeter::find_counters(const fs::path& root) {
  std::array<std::vector<fs::path>, kKinds> zones;
  for (const fs::path& zone : zones_in(root)) {
    const std::string name = first_line(zone / "name");
    if (name.starts_with("package")) zones[kPackage].push_back(zone);
    if (name == "core") zones[kCore].push_back(zone);
    if (name == "dram") zones[kMemory].push_back(zone);
  }
  for (const Kind kind : {kPackage, kCore, kMemory}) open_counters(kind, zones[kind]);
  if (counters_.empty() && trouble_.empty())
    trouble_ = "cannot measure energy: " + root.string() +
               " has no energy counters (RAPL); virtual machines and many processors lack them";
}

// Opens the counters of a kind. Opens none if one of them cannot be read, because the sum would be wrong.
void EnergyMeter::open_counters(Kind kind, const std::vector<fs::path>& zones) {
  constexpr std::array<const char*, kKinds> kNames = {"packages", "cores", "memory"};
  std::vector<EnergyCounter> opened;
  for (const fs::path& zone : zones) {
    const fs::path path = zone / "energy_uj";
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const int reason = errno;
    const std::optional<std::uint64_t> value = file < 0 ? std::nullopt : number_in(file);
    if (file >= 0) opened.push_back({kind, file, range_of(zone), value.value_or(0)});
    if (value) continue;
    trouble_ += (trouble_.empty() ? "" : "; ") + std::string("the energy of ") + kNames[kind] +
                " is not measured: " + path.string() + ": " +
                (file >= 0 ? "does not contain a number" : std::strerror(reason));
    if (file < 0 && reason == EACCES) trouble_ += " (as root: chmod a+r " + path.string() + ")";
    for (const EnergyCounter& counter : opened) ::close(counter.file);
    return;
  }
  is_measured_[kind] = !opened.empty();
  counters_.insert(counters_.end(), opened.begin(), opened.end());
}

// Adds the counters to used_uj_. A counter that can no longer be read keeps its last value. REQUIRES: the
// mutex is held.
void EnergyMeter::read_counters() {
  for (EnergyCounter& counter : counters_) {
    const std::optional<std::uint64_t> now = number_in(counter.file);
    if (!now) continue;
    if (*now >= counter.last) {
      used_uj_[counter.kind] += *now - counter.last;
    } else {
      // The counter overflowed. If its range is not known, at least its present value was used.
      const std::uint64_t rest = counter.range >= counter.last ? counter.range - counter.last : 0;
      used_uj_[counter.kind] += rest + *now;
    }
    counter.last = *now;
  }
}

Energy EnergyMeter::read() {
  const std::lock_guard lock(mutex_);
  read_counters();
  const auto joules = [this](Kind kind) -> std::optional<double> {
    if (!is_measured_[kind]) return std::nullopt;
    return kJoulesOfMicrojoule * static_cast<double>(used_uj_[kind]);
  };
  return {joules(kPackage), joules(kCore), joules(kMemory)};
}

std::string energy_text(const Energy& energy) {
  std::string text;
  const auto add = [&](const char* name, const std::optional<double>& joules) {
    if (!joules) return;
    std::array<char, 48> part;
    std::snprintf(part.data(), part.size(), "%s%s %.4g J", text.empty() ? "" : ", ", name, *joules);
    text += part.data();
  };
  add("package", energy.package);
  add("core", energy.core);
  add("memory", energy.memory);
  return text;
}

}  // namespace gradwire
