#include "experiments/bench/outside.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace gradwire::bench {
namespace {

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::optional<double> figure(const std::string& line, const std::string& name) {
  const std::size_t at = line.find(name + "=");
  if (at == std::string::npos) return std::nullopt;
  return std::strtod(line.c_str() + at + name.size() + 1, nullptr);
}

}  // namespace

std::optional<OutsideResult> run_outside(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += quoted(word) + " ";
  OutsideResult result;
  bool found = false;
  const double seconds = seconds_of([&] {
    FILE* const pipe = popen((text + "2>/dev/null").c_str(), "r");
    if (pipe == nullptr) return;
    char buffer[1024];
    while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) {
      const std::string line = buffer;
      const auto min_ms = figure(line, "min_ms"), median_ms = figure(line, "med_ms");
      if (!line.starts_with("RESULT") || !min_ms || !median_ms) continue;
      result.min_ms = *min_ms;
      result.median_ms = *median_ms;
      result.peak_mb = figure(line, "VmHWM_MB").value_or(0);
      found = true;
    }
    found = pclose(pipe) == 0 && found;
  });
  result.process_ms = 1e3 * seconds;
  return found ? std::optional(result) : std::nullopt;
}

Duel duel(std::uint32_t turns, std::uint32_t steps, const std::function<void()>& step,
          const std::vector<std::string>& command) {
  Duel figures;
  std::vector<double> mins, medians;
  for (std::uint32_t k = 0; k < std::max(1u, steps / 10); ++k) step();  // warm
  for (std::uint32_t turn = 0; turn < turns; ++turn) {
    for (std::uint32_t k = 0; k < steps; ++k) figures.ours.add(1e3 * seconds_of(step));
    if (command.empty()) continue;
    if (const auto result = run_outside(command)) {
      mins.push_back(result->min_ms);
      medians.push_back(result->median_ms);
    }
  }
  if (mins.empty()) return figures;
  std::sort(medians.begin(), medians.end());
  const double median = medians[medians.size() / 2];
  Series theirs;  // of which only these two figures are known
  theirs.add(*std::min_element(mins.begin(), mins.end()));
  theirs.add(median);
  theirs.add(median);
  figures.theirs = theirs;
  return figures;
}

}  // namespace gradwire::bench
