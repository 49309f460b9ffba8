#include "benchmarks/outside.h"

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

}  // namespace

std::optional<double> figure_in(const std::string& line, const std::string& name) {
  const std::size_t at = line.find(" " + name + "=");
  if (at == std::string::npos) return std::nullopt;
  return std::strtod(line.c_str() + at + name.size() + 2, nullptr);
}

std::optional<std::vector<std::string>> result_lines(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += quoted(word) + " ";
  FILE* const pipe = popen((text + "2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::vector<std::string> lines;
  char buffer[1024];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr)
    if (std::string line = buffer; line.starts_with("RESULT")) lines.push_back(std::move(line));
  if (pclose(pipe) != 0) return std::nullopt;
  return lines;
}

std::optional<OutsideResult> run_outside(const std::vector<std::string>& command) {
  OutsideResult result;
  bool found = false;
  const double seconds = seconds_of([&] {
    for (const std::string& line : result_lines(command).value_or(std::vector<std::string>{})) {
      const auto min_ms = figure_in(line, "min_ms"), median_ms = figure_in(line, "med_ms");
      if (!min_ms || !median_ms) continue;
      result.min_ms = *min_ms;
      result.median_ms = *median_ms;
      result.peak_mb = figure_in(line, "VmHWM_MB").value_or(0);
      found = true;
    }
  });
  result.process_ms = 1e3 * seconds;
  return found ? std::optional(result) : std::nullopt;
}

ProgramComparison measure_in_turns(std::uint32_t turns, std::uint32_t steps,
                                   const std::function<void()>& step,
                                   const std::vector<std::string>& command) {
  ProgramComparison figures;
  std::vector<double> mins, medians;
  for (std::uint32_t k = 0; k < std::max(1u, steps / 10); ++k) step();  // warm-up
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
  Series theirs;  // only these two figures are known
  theirs.add(*std::min_element(mins.begin(), mins.end()));
  theirs.add(median);
  theirs.add(median);
  figures.theirs = theirs;
  return figures;
}

std::uint32_t steps_for(const Bench& bench, double seconds, const std::function<void()>& step) {
  if (bench.small()) return 2;
  step();
  const double one = seconds_of([&] {
    for (int k = 0; k < 3; ++k) step();
  });
  return static_cast<std::uint32_t>(std::clamp(3 * seconds / one, 5.0, 20000.0));
}

ProgramComparison measure(Bench& bench, double seconds, const std::function<void()>& step,
                          std::vector<std::string> command) {
  const std::uint32_t steps = steps_for(bench, seconds, step);
  if (!command.empty()) command.push_back(std::to_string(steps));
  return measure_in_turns(bench.repeats(kComparisonTurns), steps, step, command);
}

std::string other_program(const Bench& bench, const std::string& program) {
  const std::filesystem::path path = bench.options().other_programs / program;
  return bench.options().other_programs.empty() || !std::filesystem::exists(path) ? "" : path.string();
}

std::vector<std::string> other_command(const Bench& bench, const char* program, const TaskText& text,
                                       std::vector<std::string> arguments) {
  const std::string path = other_program(bench, program);
  if (path.empty() || text.path.empty()) return {};
  arguments.insert(arguments.begin(), {path, text.path.string()});
  return arguments;
}

}  // namespace gradwire::bench
