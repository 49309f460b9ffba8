// Programs from outside that a figure is compared with: started, and their own report read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/bench/harness.h"

namespace gradwire::bench {

// What a program says of itself in a line "RESULT ... min_ms=... med_ms=... VmHWM_MB=...".
struct OutsideResult {
  double min_ms = 0, median_ms = 0;
  double peak_mb = 0;
  double process_ms = 0;  // from its start to its end, as seen from here
};

// Nothing when it cannot be run or says no such thing.
std::optional<OutsideResult> run_outside(const std::vector<std::string>& command);

// A figure and an outside program's, taken in turns: one by one times of `step` in milliseconds, and what the
// program reports of as many. `command` empty: alone.
struct Duel {
  Series ours;
  std::optional<Series> theirs;
};
Duel duel(std::uint32_t turns, std::uint32_t steps, const std::function<void()>& step,
          const std::vector<std::string>& command);

}  // namespace gradwire::bench
