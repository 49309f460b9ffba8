// Benchmarks of networks: the two tasks of tasks.h at several sizes, compared with other programs if they are
// available.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "benchmarks/benchmarks.h"
#include "benchmarks/outside.h"
#include "benchmarks/peak.h"
#include "benchmarks/tasks.h"
#include "engine/kernels/select.h"

namespace gradwire::bench {
namespace {

struct Aim {
  double at_most;             // largest allowed ratio of our time to that of the hand-written program
  double share_at_least = 0;  // smallest allowed share of the core's peak
};

// Returns a row. `least` holds the least possible seconds of a step on this core.
Row row_of(std::string name, const ProgramComparison& figures, const Series& least, const char* rival,
           Aim aim, std::string note = {}) {
  Row row;
  row.name = std::move(name);
  row.value = figures.ours.times(1e3);
  row.unit = "us/step";
  row.note = std::move(note);
  row.floor = {least.times(1e6), aim.share_at_least};
  if (!figures.theirs) return row;
  row.versus = {rival, figures.theirs->times(1e3)};
  row.target = {Target::Of::kRatio, aim.at_most};
  return row;
}

// Returns a body that times several consecutive steps, so that each rival finds its own numbers in the
// caches.
template <class Real>
BenchBody steps_of(TaskRun<Real>& run) {
  return [&run] {
    constexpr int kSteps = 5;
    run.step();
    return seconds_of([&] {
             for (int k = 0; k < kSteps; ++k) run.step();
           }) /
           kSteps;
  };
}

// Returns the multiply-adds of a gradient: three for each weight at each position, and those of attention. In
// each of the six layers, attention needs seven for each unit of the width and each pair of positions.
double gpt_multiply_adds(const Network& network, std::size_t context, std::size_t width, std::size_t b) {
  const double positions = static_cast<double>(context * b), weights = static_cast<double>(network.dim());
  const double pairs = static_cast<double>(b * context * (context + 1)) / 2;
  return 3 * positions * weights + 7 * 6 * pairs * static_cast<double>(width);
}

std::vector<std::size_t> hidden_sizes(const Bench& bench) {
  if (bench.small()) return {4};
  return {4, 16, 32, 64, 128, 512, 1024};
}

}  // namespace

void engine_letters(Bench& bench) {
  const TaskText text = names_text(bench.small());
  const Windows windows = names_windows(text);
  for (const std::size_t e : hidden_sizes(bench)) {
    const std::string size = " e=" + std::to_string(e);
    const Network network = letters_network(e);
    TaskRun<float> one(network, windows, 1), block(network, windows, 64);
    // The peaks for arrays as large as x and its gradient together, and as large as x alone.
    const Peak peak(one.executor().kernels(), 2 * network.dim(), bench.repeats(kComparisonTurns)),
        peak_in_place(one.executor().kernels(), network.dim(), bench.repeats(kComparisonTurns));
    // The work of the two layers. The gradient reads each weight twice and writes its derivative once. The
    // step then reads both and writes the weight.
    const double weights = static_cast<double>((16 * 64 + 27) * e), d = static_cast<double>(network.dim());
    const PeakWork work{3 * weights, 6 * d * sizeof(float)}, in_place{3 * weights, 3 * d * sizeof(float)};
    const PeakWork batched{64 * work.multiply_adds, work.bytes};
    const auto command = [&](const char* batch, const char* mode) {
      return other_command(bench, "mlp", text, {std::to_string(e), batch, mode});
    };
    const auto grad = measure(
        bench, 0.1, [&] { one.step(); }, command("1", "grad"));
    bench.row(row_of("engine/letters b=1" + size, grad, peak.seconds(work), "hand-written", {1.1}));
    const auto fused = measure(
        bench, 0.1, [&] { one.fused_step(); }, command("1", "fused"));
    bench.row(row_of("engine/letters fused" + size, fused, peak_in_place.seconds(in_place),
                     "hand-written, fused", {1.1}));
    const auto batch = measure(
        bench, 0.2, [&] { block.step(); }, command("64", "batch"));
    bench.row(row_of("engine/letters b=64" + size, batch, peak.seconds(batched), "hand-written, batched",
                     {1.1, e >= 512 ? 0.8 : 0}));
    bench.keep(one.loss() + block.loss());
  }
}

void engine_batches(Bench& bench) {
  const Windows windows = names_windows(names_text(bench.small()));
  for (const std::size_t e : hidden_sizes(bench)) {
    const Network network = letters_network(e);
    const std::vector<std::size_t> sizes = {64, 15, 17, 63};
    std::vector<TaskRun<float>> runs;
    for (const std::size_t b : sizes) runs.emplace_back(network, windows, b);
    std::vector<BenchBody> bodies;
    for (auto& run : runs) bodies.push_back(steps_of(run));
    const std::uint32_t steps = steps_for(bench, 0.2, [&] { runs[0].step(); });
    const auto series = interleave(std::min(steps, 100u), bodies);
    for (std::size_t k = 1; k < sizes.size(); ++k) {
      Row row;
      row.name = "engine/batches b=" + std::to_string(sizes[k]) + " e=" + std::to_string(e);
      row.value = series[k].times(1e6 / static_cast<double>(sizes[k]));
      row.unit = "us/sample";
      row.versus = {"b=64", series[0].times(1e6 / 64)};
      row.target = {Target::Of::kRatio, e >= 512 ? 1.4 : 1.2};
      bench.row(row);
    }
  }
}

void engine_gpt(Bench& bench) {
  const TaskText text = shakespeare_text(bench.small());
  const Windows windows = shakespeare_windows(text, 8);
  const Network network = gpt_network();
  for (const std::size_t b :
       bench.small() ? std::vector<std::size_t>{2} : std::vector<std::size_t>{1, 2, 4, 8, 16, 32, 64}) {
    TaskRun<float> run(network, windows, b);
    const auto command = other_command(bench, "gpt", text, {std::to_string(b), "16"});
    const auto figures = measure(
        bench, 0.2, [&] { run.step(); }, command);
    const Peak peak(run.executor().kernels(), 2 * network.dim(), bench.repeats(kComparisonTurns));
    const PeakWork work{gpt_multiply_adds(network, 8, 24, b),
                        6.0 * sizeof(float) * static_cast<double>(network.dim())};
    bench.row(row_of("engine/gpt b=" + std::to_string(b), figures, peak.seconds(work), "hand-written",
                     {1.1, b == 64 ? 0.72 : 0}));
    bench.keep(run.loss());
  }
  TaskRun<float> each(network, windows, 64);
  auto figures = measure(bench, 0.2, [&] { each.each_gradient(); }, {});
  figures.ours = figures.ours.times(1.0 / 64);
  const auto command = other_command(bench, "gpt", text, {"1", "16", bench.small() ? "2" : "2000"});
  if (const auto theirs = command.empty() ? std::nullopt : run_outside(command)) {
    Series series;
    series.add(theirs->min_ms);
    series.add(theirs->median_ms);
    series.add(theirs->median_ms);
    figures.theirs = series;
  }
  const Peak peak(each.executor().kernels(), 2 * network.dim(), bench.repeats(kComparisonTurns));
  const PeakWork work{gpt_multiply_adds(network, 8, 24, 1),
                      3.0 * sizeof(float) * static_cast<double>(network.dim())};
  bench.row(row_of("engine/gpt gradients one by one", figures, peak.seconds(work), "hand-written, b=1", {1.3},
                   "per sample of 64"));
}

void engine_shapes(Bench& bench) {
  const TaskText text = shakespeare_text(bench.small());
  struct NetworkSize {
    std::size_t context, width;
  };
  std::vector<NetworkSize> sizes = {{8, 24},   {16, 24}, {13, 24},  {64, 24},
                                    {256, 24}, {64, 96}, {64, 384}, {256, 384}};
  if (bench.small()) sizes = {{5, 24}};
  for (const auto [context, width] : sizes) {
    const Network network = gpt_network(context, width);
    const std::size_t b = std::max<std::size_t>(1, 64 / context);
    TaskRun<float> run(network, shakespeare_windows(text, context), b);
    const auto figures = measure(bench, 0.3, [&] { run.gradient(); }, {});
    const double flops = 2 * gpt_multiply_adds(network, context, width, b);
    Row row;
    row.name = "engine/shapes context=" + std::to_string(context) + " width=" + std::to_string(width);
    row.value = figures.ours.times(1e9 / flops);
    row.unit = "ps/flop";
    row.note =
        "b=" + std::to_string(b) + ", arena " + std::to_string(run.executor().arena_bytes() / 1024) + " KB";
    bench.row(row);
    bench.keep(run.loss());
  }
}

void engine_precision(Bench& bench) {
  const Windows names = names_windows(names_text(bench.small()));
  const Windows text = shakespeare_windows(shakespeare_text(bench.small()), 8);
  const auto compare = [&](const std::string& name, const Network& network, const Windows& windows,
                           std::size_t b, double at_most) {
    TaskRun<float> narrow(network, windows, b);
    TaskRun<double> wide(network, windows, b);
    const std::uint32_t steps = steps_for(bench, 0.1, [&] { wide.step(); });
    const auto series = interleave(std::min(steps, 200u), {steps_of(wide), steps_of(narrow)});
    Row row;
    row.name = "engine/precision fp64 " + name + " b=" + std::to_string(b);
    row.value = series[0].times(1e6);
    row.unit = "us/step";
    row.versus = {"fp32", series[1].times(1e6)};
    row.target = {Target::Of::kRatio, at_most};
    bench.row(row);
    bench.keep(narrow.loss() + wide.loss());
  };
  for (const std::size_t e :
       bench.small() ? std::vector<std::size_t>{4} : std::vector<std::size_t>{16, 64, 512})
    for (const std::size_t b : {1, 64})
      compare("letters e=" + std::to_string(e), letters_network(e), names, b, 2.8);
  for (const std::size_t b : {1, 8, 64}) compare("gpt", gpt_network(), text, b, 2);
}

void engine_kernels(Bench& bench) {
  const Windows names = names_windows(names_text(bench.small()));
  const Windows text = shakespeare_windows(shakespeare_text(bench.small()), 8);
  const auto available = available_kernels<float>();
  const auto compare = [&](const std::string& name, const Network& network, const Windows& windows,
                           std::size_t b) {
    std::vector<TaskRun<float>> runs;
    for (const Kernels<float>* kernels : available) runs.emplace_back(network, windows, b, kernels);
    std::vector<BenchBody> bodies;
    for (auto& run : runs) bodies.push_back(steps_of(run));
    const std::uint32_t steps = steps_for(bench, 0.1, [&] { runs[0].step(); });
    const auto series = interleave(std::min(steps, 200u), bodies);
    for (std::size_t k = 0; k < available.size(); ++k) {
      Row row;
      row.name = "engine/kernels " + name + " " + available[k]->name;
      row.value = series[k].times(1e6);
      row.unit = "us/step";
      if (k + 1 < available.size() && std::string(available.back()->name) == "avx512") {
        row.versus = {"avx512", series.back().times(1e6)};
        row.target = {Target::Of::kRatio, std::string(available[k]->name) == "avx2" ? 1.6 : 5};
      }
      bench.row(row);
    }
    // All kernels must give equal results up to rounding. SGD amplifies differences, so only the first steps
    // are compared.
    TaskRun<float> first(network, windows, b, available.front()), last(network, windows, b, available.back());
    first.step();
    last.step();
    if (std::abs(first.loss() - last.loss()) > 1e-4 * std::abs(last.loss()))
      throw std::logic_error("kernels disagree on " + name);
  };
  for (const std::size_t e :
       bench.small() ? std::vector<std::size_t>{4} : std::vector<std::size_t>{16, 64, 512})
    for (const std::size_t b : {1, 64})
      compare("letters e=" + std::to_string(e) + " b=" + std::to_string(b), letters_network(e), names, b);
  for (const std::size_t b : {1, 8}) compare("gpt b=" + std::to_string(b), gpt_network(), text, b);
}

}  // namespace gradwire::bench
