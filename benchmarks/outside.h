// Runs other programs that a figure is compared with, and reads their reports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "benchmarks/harness.h"
#include "benchmarks/tasks.h"

namespace gradwire::bench {

// Contents of a program's report "RESULT ... min_ms=... med_ms=... VmHWM_MB=...".
struct OutsideResult {
  double min_ms = 0, median_ms = 0;
  double peak_mb = 0;
  double process_ms = 0;  // from start to end, measured by this process
};

// Returns the lines of a program's output that begin with RESULT, or nullopt if it cannot be run or fails.
std::optional<std::vector<std::string>> result_lines(const std::vector<std::string>& command);
// Returns the number after "NAME=" in such a line, or nullopt.
std::optional<double> figure_in(const std::string& line, const std::string& name);

// Returns the report of the program, or nullopt if it cannot be run or prints no report.
std::optional<OutsideResult> run_outside(const std::vector<std::string>& command);

// Figures of gradwire and another program, measured in turns: the milliseconds of each call of `step`, and
// the program's report on as many steps. `theirs` is unset if `command` is empty.
struct ProgramComparison {
  Series ours;
  std::optional<Series> theirs;
};
ProgramComparison measure_in_turns(std::uint32_t turns, std::uint32_t steps,
                                   const std::function<void()>& step,
                                   const std::vector<std::string>& command);

inline constexpr std::uint32_t kComparisonTurns = 5;

// Returns a number of steps that takes about `seconds` each turn, for a steady figure.
std::uint32_t steps_for(const Bench& bench, double seconds, const std::function<void()>& step);

// Compares `step` with the program that `command` starts. Each turn makes enough steps to take about
// `seconds`; their number is appended to the command.
ProgramComparison measure(Bench& bench, double seconds, const std::function<void()>& step,
                          std::vector<std::string> command);

// Returns the path of a program in the folder of --beside, or an empty string if it is missing.
std::string other_program(const Bench& bench, const std::string& program);
// Returns a command that starts such a program with the file of the text as its first argument. Empty if the
// program or the file is missing.
std::vector<std::string> other_command(const Bench& bench, const char* program, const TaskText& text,
                                       std::vector<std::string> arguments);

}  // namespace gradwire::bench
