// Whole processes that link only the engine: time from start to end, and peak memory.
#include <filesystem>
#include <fstream>

#include "benchmarks/benchmarks.h"
#include "benchmarks/outside.h"
#include "benchmarks/tasks.h"

namespace gradwire::bench {
namespace {

// Returns the path of the probe. It is in the folder of the programs under test, or else in the folder of
// this program.
std::filesystem::path probe(const Bench& bench) {
  std::error_code ignored;
  const std::filesystem::path folder =
      bench.options().programs.empty()
          ? std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path()
          : bench.options().programs;
  return folder / "gradwire-engine-probe";
}

struct ProcessCase {
  std::string name;
  std::vector<std::string> ours, theirs;  // arguments after the program; theirs may be empty
  double peak_mb, process_ms;             // bounds
};

void compare(Bench& bench, const ProcessCase& task) {
  Series time, peak, rival_time, rival_peak;
  for (std::uint32_t turn = 0; turn < bench.repeats(7); ++turn) {
    const auto ours = run_outside(task.ours);
    if (!ours) return bench.skip("engine/process " + task.name, task.ours[0] + " does not run");
    time.add(ours->process_ms);
    peak.add(ours->peak_mb);
    if (task.theirs.empty()) continue;
    if (const auto theirs = run_outside(task.theirs)) {
      rival_time.add(theirs->process_ms);
      rival_peak.add(theirs->peak_mb);
    }
  }
  const auto row = [&](const char* what, const Series& value, const Series& rival, const char* unit,
                       double at_most) {
    Row row;
    row.name = "engine/process " + task.name + what;
    row.value = value;
    row.unit = unit;
    if (!rival.empty()) row.versus = {"hand-written", rival};
    row.target = {Target::Of::kValue, at_most};
    bench.row(row);
  };
  row(", start to end", time, rival_time, "ms", task.process_ms);
  row(", peak memory", peak, rival_peak, "MB", task.peak_mb);
}

}  // namespace

void engine_process(Bench& bench) {
  TaskText names = names_text(bench.small()), text = shakespeare_text(bench.small());
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() /
      ("gradwire-bench-" + std::to_string(std::hash<double>()(seconds_of([] {}))));
  std::filesystem::create_directories(folder);
  const auto file_of = [&](TaskText& t, const char* name) {
    if (!t.path.empty()) return t.path.string();
    std::ofstream(folder / name) << t.text;
    return (folder / name).string();
  };
  const std::string names_file = file_of(names, "names.txt"), text_file = file_of(text, "text.txt");
  const auto rival = [&](const char* program, const TaskText& t, std::vector<std::string> arguments) {
    const std::filesystem::path path = bench.options().other_programs / program;
    if (bench.options().other_programs.empty() || t.path.empty() || !std::filesystem::exists(path))
      return std::vector<std::string>();
    arguments.insert(arguments.begin(), {path.string(), t.path.string()});
    return arguments;
  };
  const std::string program = probe(bench).string();
  const std::string e = bench.small() ? "4" : "1024";
  compare(bench, {"letters e=" + e + " b=1",
                  {program, "letters", names_file, e, "1", "1"},
                  rival("mlp", names, {e, "1", "grad", "1"}),
                  25,
                  60});
  compare(bench, {"letters e=" + e + " b=64",
                  {program, "letters", names_file, e, "64", "1"},
                  rival("mlp", names, {e, "64", "batch", "1"}),
                  25,
                  60});
  compare(
      bench,
      {"gpt b=1", {program, "gpt", text_file, "24", "1", "1"}, rival("gpt", text, {"1", "16", "1"}), 10, 60});
  compare(bench, {"gpt b=64",
                  {program, "gpt", text_file, "24", "64", "1"},
                  rival("gpt", text, {"64", "16", "1"}),
                  10,
                  60});
  std::filesystem::remove_all(folder);
}

}  // namespace gradwire::bench
