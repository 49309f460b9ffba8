// Starts programs from outside that a figure is compared with, and reads what they report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "benchmarks/harness.h"
#include "benchmarks/tasks.h"

namespace gradwire::bench {

// What a program reports in a line "RESULT ... min_ms=... med_ms=... VmHWM_MB=...".
struct OutsideResult {
  double min_ms = 0, median_ms = 0;
  double peak_mb = 0;
  double process_ms = 0;  // from its start to its end, as seen from here
};

// The lines of a program's output that begin with RESULT; nothing when it cannot be run or fails.
std::optional<std::vector<std::string>> result_lines(const std::vector<std::string>& command);
// The number behind "NAME=" in such a line.
std::optional<double> figure_in(const std::string& line, const std::string& name);

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

inline constexpr std::uint32_t kDuelTurns = 5;

// Enough steps for a steady figure, in about `seconds` each turn.
std::uint32_t steps_for(const Bench& bench, double seconds, const std::function<void()>& step);

// Such a duel; the number of steps is the last argument of the command.
Duel measure(Bench& bench, double seconds, const std::function<void()>& step,
             std::vector<std::string> command);

// The path of a program in the folder of --beside; empty: it is not there.
std::string beside_path(const Bench& bench, const std::string& program);
// Such a program with the file of the text as first argument; empty where either is not there.
std::vector<std::string> beside(const Bench& bench, const char* program, const TaskText& text,
                                std::vector<std::string> arguments);

}  // namespace gradwire::bench
