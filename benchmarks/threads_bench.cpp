// Whole runs of the program with 1, 2, 4, ... threads: few long clients, many short ones, and a million.
#include <algorithm>
#include <string>
#include <vector>

#include "benchmarks/benchmarks.h"
#include "benchmarks/run_session.h"
#include "parallel/processors.h"

namespace gradwire::bench {
namespace {

struct ThreadsRun {
  std::string name, toml;
};

std::vector<ThreadsRun> runs_of(const Bench& bench) {
  const auto number = [&](std::uint32_t full, std::uint32_t tiny) {
    return std::to_string(bench.size(full, tiny));
  };
  const auto run = [](const std::string& rounds) {
    return "[run]\nevaluate_every = 0\nrounds = " + rounds + "\n";
  };
  return {
      {"fedavg, softmax 784 x 10, n = 1000",
       "precision = \"fp32\"\n[problem]\nkind = \"mlp\"\ndata = \"synthetic\"\nclasses = 10\ndim = "
       "784\nsamples = " +
           number(20000, 400) + "\n[clients]\ncount = " + number(1000, 20) +
           "\n[algorithm]\nname = \"fedavg\"\nbatch = 20\nlocal_steps = 5\nlocal_step_size = 0.01\n" +
           run(number(40, 2))},
      {"ef21 topk:k=1, logistic, 0.03 ms a client, n = 64",
       "[problem]\nkind = \"logistic\"\ndata = \"synthetic\"\ndim = 100\nsamples = " + number(9600, 640) +
           "\n[clients]\ncount = 64\n[algorithm]\nname = \"ef21\"\ncompressor = \"topk:k=1\"\nstep_size = "
           "0.1\n" +
           run(number(1000, 2))},
      {"fedavg, mlp 784-128-10, 2 steps of 64, n = 32",
       "precision = \"fp32\"\n[problem]\nkind = \"mlp\"\nhidden = [128]\ndata = \"synthetic\"\nclasses = "
       "10\ndim = 784\nsamples = " +
           number(4096, 320) +
           "\n[clients]\ncount = 32\n[algorithm]\nname = \"fedavg\"\nbatch = 64\nlocal_steps = "
           "2\nlocal_step_size = 0.01\n" +
           run(number(50, 2))},
      {"gd, mlp 784-128-10, 500 samples a client, n = 16",
       "precision = \"fp32\"\n[problem]\nkind = \"mlp\"\nhidden = [128]\ndata = \"synthetic\"\nclasses = "
       "10\ndim = 784\nsamples = " +
           number(8000, 160) + "\n[clients]\ncount = 16\n[algorithm]\nname = \"gd\"\nstep_size = 0.01\n" +
           run(number(30, 2))},
      {"ef21 topk:k=5, quadratics d = 100, n = " + number(1000000, 2000),
       "[problem]\nkind = \"quadratic\"\ndim = 100\n[clients]\ncount = " + number(1000000, 2000) +
           "\n[algorithm]\nname = \"ef21\"\ncompressor = \"topk:k=5\"\nstep_size = 0.1\n" + run("6")},
  };
}

}  // namespace

void scale_threads(Bench& bench) {
  const auto program = find_gradwire(bench.options().programs);
  if (program.empty()) return bench.skip("scale/threads", "gradwire is not in the folder of the programs");
  std::vector<unsigned> threads;
  for (unsigned t = 1; t < usable_processors(); t *= 2) threads.push_back(t);
  threads.push_back(usable_processors());
  Table seconds;
  seconds.name = "scale/threads";
  seconds.unit = "s for all rounds, the least of the repeats";
  seconds.columns = {"run"};
  for (const unsigned t : threads)
    seconds.columns.push_back(std::to_string(t) + (t == 1 ? " thread" : " threads"));
  for (const char* column : {"speed-up", "efficiency", "memory"}) seconds.columns.emplace_back(column);
  for (const ThreadsRun& run : runs_of(bench)) {
    std::vector<Series> took(threads.size()), peak(threads.size());
    for (std::uint32_t r = 0; r < bench.repeats(3); ++r)
      for (std::size_t k = 0; k < threads.size(); ++k) {
        const RunFigures figures = run_alone(program, run.toml, threads[k]);
        took[k].add(figures.seconds);
        peak[k].add(static_cast<double>(figures.peak_bytes));
      }
    Table::Line line{.name = run.name, .figures = {}};
    for (const Series& s : took) line.figures.emplace_back(s.min());
    const double speed_up = took.front().min() / took.back().min();
    line.figures.emplace_back(speed_up);
    line.figures.emplace_back(speed_up / threads.back());
    line.figures.emplace_back(peak.back().min() / peak.front().min());
    seconds.lines.push_back(std::move(line));
  }
  seconds.notes = {
      "speed-up, efficiency (speed-up / threads) and peak memory: the last column of threads against one"};
  bench.table(seconds);
}

}  // namespace gradwire::bench
