#include "benchmarks/run_session.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "experiments/cli/support/child_process.h"
#include "experiments/cli/support/scratch_folder.h"
#include "report/json.h"

namespace gradwire::bench {

std::filesystem::path find_gradwire(const std::filesystem::path& given) {
  std::error_code error;
  const std::filesystem::path folder =
      !given.empty() ? given : std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::filesystem::path program = folder / "gradwire";
  return std::filesystem::exists(program, error) ? program : std::filesystem::path();
}

RunFigures run_alone(const std::filesystem::path& gradwire, const std::string& toml, unsigned threads) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kDeadline{300};
  // The time between two readings of the peak memory. Growth after the last reading is missed.
  constexpr std::chrono::milliseconds kPause{1};
  const ScratchFolder folder;
  const std::filesystem::path experiment = folder.path() / "bench.toml", results = folder.path() / "results";
  std::ofstream(experiment) << toml;
  RunFigures figures;
  const auto started = Clock::now();
  ChildProcess process("run", gradwire,
                       {"run", experiment.string(), "--out", results.string(), "--threads",
                        std::to_string(threads), "--quiet", "--checkpoint-every", "0"},
                       folder.path() / "log");
  while (!process.ended()) {
    figures.peak_bytes = std::max(figures.peak_bytes, process.peak_bytes());
    if (Clock::now() - started > kDeadline) throw std::runtime_error("the run did not end in time");
    std::this_thread::sleep_for(kPause);
  }
  figures.process_seconds = std::chrono::duration<double>(Clock::now() - started).count();
  if (*process.ended() != 0) throw std::runtime_error("the run ended early: " + process.last_line());
  std::ifstream summary(results / "summary.json");
  figures.seconds = Json::parse(summary).at("seconds").get<double>();
  return figures;
}

}  // namespace gradwire::bench
