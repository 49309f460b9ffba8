// Starts programs from outside that a figure is compared with, and reads what they report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/bench/harness.h"

namespace gradwire::bench {

// What a program reports in a line "RESULT ... min_ms=... med_ms=... VmHWM_MB=...".
struct OutsideResult {
  double min_ms = 0, median_ms = 0;
  double peak_mb = 0;
  double process_ms = 0;  // from its start to its end, as seen from here
};

// Nothing when the program cannot be run or prints no such line.
std::optional<OutsideResult> run_outside(const std::vector<std::string>& command);

// Our figure and that of an outside program, measured in turns: the milliseconds of each call of `step`, and
// what the program reports of as many steps. Empty `command`: only ours.
struct Duel {
  Series ours;
  std::optional<Series> theirs;
};
Duel duel(std::uint32_t turns, std::uint32_t steps, const std::function<void()>& step,
          const std::vector<std::string>& command);

}  // namespace gradwire::bench
