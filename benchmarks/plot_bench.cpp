// Benchmark of a figure of many runs.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "benchmarks/benchmarks.h"
#include "experiments/cli/support/scratch_folder.h"
#include "plotting/plot.h"
#include "report/columns.h"

namespace gradwire::bench {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error(file.string() + ": cannot be written");
}

// Writes the metrics of a noisy run, with all columns. Its squared gradient norm falls by six powers of ten.
void write_run(const fs::path& folder, std::uint32_t run, std::uint32_t rounds) {
  const std::string number = std::to_string(run);
  write(folder / "config.toml", "name = \"run-" + number +
                                    "\"\nseed = 1\n[algorithm]\nname = \"gd\"\nstep_size = 0." +
                                    std::to_string(1000 + run) + "\n");
  Random random(run, "plot bench");
  std::string text = metrics_header() + "\n";
  for (std::uint32_t k = 0; k <= rounds; ++k) {
    const double share = static_cast<double>(k) / rounds;
    RoundRecord r;
    r.round = k;
    r.grad_norm_sq = std::exp(-14 * share * (1 - 0.01 * run) + 0.5 * random.normal());
    r.loss = 0.3 + *r.grad_norm_sq;
    r.bits_up = r.bits_up_paper = 320.0 * k;
    r.bits_down = r.bits_down_paper = 3200.0 * k;
    r.bytes_up = std::uint64_t{800} * k;
    r.bytes_down = std::uint64_t{8000} * k;
    r.grad_calls = 1628.0 * k;
    r.replies = 20;
    r.seconds = 0.001 * k + 1e-7 * std::abs(random.normal());
    text += metrics_line(r) + "\n";
  }
  write(folder / "metrics.csv", text);
}

// Reads all files block by block without parsing them. Returns the seconds.
double read_seconds(const std::vector<fs::path>& files, double& bytes) {
  bytes = 0;
  return seconds_of([&] {
    std::vector<char> block(1 << 20);
    for (const fs::path& file : files) {
      std::ifstream in(file, std::ios::binary);
      while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0)
        bytes += static_cast<double>(in.gcount());
    }
  });
}

}  // namespace

void plot_fifty(Bench& bench) {
  const std::uint32_t runs = bench.size(50u, 3u), rounds = bench.size(10'000u, 200u);
  const ScratchFolder scratch;
  std::vector<fs::path> files;
  for (std::uint32_t run = 0; run < runs; ++run) {
    const fs::path folder = scratch.path() / "results" / std::to_string(run);
    write_run(folder, run, rounds);
    files.push_back(folder / "metrics.csv");
  }
  PlotRequest request;
  request.folders = {scratch.path() / "results"};
  request.out = scratch.path() / "plot.svg";
  double bytes = 0;
  const auto series =
      interleave(bench.repeats(5), {[&] { return seconds_of([&] { plot_command(request); }); },
                                    [&] { return read_seconds(files, bytes); }});
  bench.keep(bytes);
  Row row;
  row.name = "plot/fifty";
  row.value = series[0];
  row.unit = "s";
  row.versus = Versus{"reading the same files", series[1]};
  row.target = {Target::Of::kValue, 2};
  row.note =
      std::to_string(runs) + " noisy runs of " + std::to_string(rounds) +
      " rounds, one curve each, from a folder of results to an SVG and a script; the page cache is warm";
  bench.row(row);
  Row size;
  size.name = "plot/fifty SVG";
  size.value.add(static_cast<double>(fs::file_size(request.out)) / 1e3);
  size.unit = "kB";
  size.target = {Target::Of::kValue, 300};
  bench.row(size);
}

}  // namespace gradwire::bench
