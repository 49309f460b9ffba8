// Benchmark of a whole sweep as a user starts it: reading the file, the runs, their folders, the table and
// the figure.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "benchmarks/benchmarks.h"
#include "experiments/cli/support/scratch_folder.h"
#include "experiments/cli/sweep/sweep.h"

namespace gradwire::bench {
namespace {

// Returns a sweep of two algorithms, ten step sizes and `seeds` seeds.
std::string sweep_text(std::uint32_t seeds, std::uint32_t rounds) {
  std::string text = R"(name = "bench"
[problem]
kind = "quadratic"
dim = 100
[clients]
count = 10
[algorithm]
name = "ef21"
compressor = "topk:k=5"
[run]
evaluate_every = 10
rounds = )" + std::to_string(rounds) +
                     R"(
[sweep]
algorithm.name = ["ef21", "ef21_hb"]
algorithm.step_size = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
seed = [1)";
  for (std::uint32_t seed = 2; seed <= seeds; ++seed) text += ", " + std::to_string(seed);
  return text + "]\n";
}

}  // namespace

void sweep_hundred(Bench& bench) {
  const std::uint32_t seeds = bench.size(5u, 1u), rounds = bench.size(1'000u, 20u);
  const ScratchFolder scratch;
  const std::filesystem::path file = scratch.path() / "sweep.toml";
  std::ofstream(file) << sweep_text(seeds, rounds);
  const std::atomic<bool> stop = false;
  std::size_t runs = 0;
  int turn = 0;
  const auto series = interleave(bench.repeats(5), {[&] {
                                   SweepRequest request;
                                   request.out = scratch.path() / std::to_string(turn++);
                                   request.quiet = true;
                                   return seconds_of([&] {
                                     const SweepPlan plan = read_sweep(file, {});
                                     const SweepReport report = run_sweep(plan, request, stop);
                                     runs = report.done;
                                     if (!report.failed.empty())
                                       throw std::runtime_error(report.failed.front());
                                   });
                                 }});
  Row row;
  row.name = "sweep/hundred";
  row.value = series[0];
  row.unit = "s";
  row.target = {Target::Of::kValue, 3};
  row.note = std::to_string(runs) + " runs of " + std::to_string(rounds) +
             " rounds, quadratics, d = 100, n = 10, one at a time on each processor";
  bench.row(row);
}

}  // namespace gradwire::bench
