// The tables of BurTorch (arXiv:2503.13795), the engine closest to this one. On its four tasks, gradwire is
// compared with the available programs and with the figures of BurTorch's authors.
#include <array>
#include <cmath>

#include "benchmarks/benchmarks.h"
#include "benchmarks/graph_times.h"
#include "benchmarks/outside.h"

namespace gradwire::bench {
namespace {

using PaperFigure = std::optional<double>;

// Means that the authors measured on their machine, from their repository github.com/burlachenkok/burtorch.
// experiments/utils/plotenergy/plot_compute_win.py reports 0.007 s (BurTorch) and 10.419 s (PyTorch 2, eager)
// for 100,000 gradients.
constexpr double kTinyBurTorchNs = 70, kTinyPyTorchNs = 104'190;
// From experiments/exp5_gpt3_example/res.txt: the gradient of a batch of a transformer with 46,337
// parameters.
struct PublishedGpt {
  std::size_t batch;
  double burtorch_ms, pytorch_ms;
};
constexpr std::array<PublishedGpt, 7> kPublishedGpt = {{{1, 0.525, 12.183},
                                                        {2, 1.032, 12.121},
                                                        {4, 2.051, 12.866},
                                                        {8, 4.042, 13.517},
                                                        {16, 8.046, 14.418},
                                                        {32, 15.996, 17.384},
                                                        {64, 31.696, 22.200}}};

constexpr std::uint32_t kPyTorchSteps = 300;

const char* const kHowToGetPyTorch =
    "for figures of PyTorch, put mlp.py, gpt.py and tiny_small.py into the folder of --beside, and install "
    "torch for python3 (Debian: python3-torch libopenblas0-serial)";

PaperFigure smallest(const std::optional<Series>& series) {
  return series ? PaperFigure(series->min()) : std::nullopt;
}

// Returns the RESULT lines of a script in the folder of --beside. Empty if the script or PyTorch is missing.
std::vector<std::string> script_lines(const Bench& bench, const char* script,
                                      const std::vector<std::string>& arguments) {
  const std::string path = other_program(bench, script);
  if (path.empty()) return {};
  std::vector<std::string> command = {"python3", path};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return result_lines(command).value_or(std::vector<std::string>{});
}

PaperFigure pytorch_ms(const Bench& bench, const char* script, const TaskText& text,
                       std::vector<std::string> arguments) {
  if (text.path.empty()) return std::nullopt;
  arguments.push_back(std::to_string(bench.size(kPyTorchSteps, 2u)));
  arguments.push_back(text.path.string());
  for (const std::string& line : script_lines(bench, script, arguments))
    if (const PaperFigure ms = figure_in(line, "min_ms")) return ms;
  return std::nullopt;
}

void graphs(Bench& bench) {
  Table table{"papers/burtorch graphs",
              "ns for a gradient, fp64, smallest",
              {"graph", "tape", "8 lanes", "fixed", "by hand", "PyTorch here", "BurTorch*", "PyTorch*"},
              {},
              {kHowToGetPyTorch, "*: means of BurTorch's authors, on their machine"}};
  const std::vector<std::string> lines = script_lines(bench, "tiny_small.py", {bench.small() ? "2" : "2000"});
  const auto add = [&](const std::string& name, const GraphTimes& times, PaperFigure burtorch,
                       PaperFigure pytorch) {
    PaperFigure here;
    for (const std::string& line : lines)
      if (line.starts_with("RESULT " + name + " ")) here = figure_in(line, "ns");
    table.lines.push_back({name,
                           {times.eager.min(), times.lanes.min(), times.fixed.min(), times.by_hand.min(),
                            here, burtorch, pytorch}});
  };
  add("tiny", tiny_times(bench), kTinyBurTorchNs, kTinyPyTorchNs);
  add("small", small_times(bench), std::nullopt, std::nullopt);
  bench.table(table);
}

void letters(Bench& bench) {
  Table table{"papers/burtorch letters",
              "ms for a step of SGD, fp32, smallest",
              {"hidden", "b=1", "by hand", "PyTorch here", "b=64", "by hand, b=64", "PyTorch here, b=64"},
              {},
              {kHowToGetPyTorch}};
  const TaskText text = names_text(bench.small());
  const Windows windows = names_windows(text);
  for (const std::size_t e : bench.small() ? std::vector<std::size_t>{4}
                                           : std::vector<std::size_t>{4, 16, 32, 64, 128, 512, 1024}) {
    const Network network = letters_network(e);
    Table::Line line{std::to_string(e), {}};
    for (const std::size_t b : {1, 64}) {
      TaskRun<float> run(network, windows, b);
      const std::string hidden = std::to_string(e), batch = std::to_string(b);
      const ProgramComparison figures = measure(
          bench, 0.1, [&] { run.step(); },
          other_command(bench, "mlp", text, {hidden, batch, b == 1 ? "grad" : "batch"}));
      line.figures.insert(line.figures.end(), {figures.ours.min(), smallest(figures.theirs),
                                               pytorch_ms(bench, "mlp.py", text, {hidden, batch})});
      bench.keep(run.loss());
    }
    table.lines.push_back(std::move(line));
  }
  bench.table(table);
}

void transformer(Bench& bench) {
  Table table{"papers/burtorch gpt",
              "ms for a step of SGD, fp32, smallest",
              {"batch", "gradwire", "by hand", "PyTorch here", "BurTorch*", "PyTorch*"},
              {},
              {kHowToGetPyTorch, "*: means of BurTorch's authors, on their machine, without the step"}};
  const TaskText text = shakespeare_text(bench.small());
  const Windows windows = shakespeare_windows(text, 8);
  const Network network = gpt_network();
  for (const PublishedGpt& published : kPublishedGpt) {
    if (bench.small() && published.batch > 2) break;
    TaskRun<float> run(network, windows, published.batch);
    const std::string batch = std::to_string(published.batch);
    const ProgramComparison figures = measure(
        bench, 0.2, [&] { run.step(); }, other_command(bench, "gpt", text, {batch, "16"}));
    table.lines.push_back(
        {batch,
         {figures.ours.min(), smallest(figures.theirs), pytorch_ms(bench, "gpt.py", text, {batch}),
          published.burtorch_ms, published.pytorch_ms}});
    bench.keep(run.loss());
  }
  bench.table(table);
}

}  // namespace

void papers_burtorch(Bench& bench) {
  graphs(bench);
  letters(bench);
  transformer(bench);
}

}  // namespace gradwire::bench
