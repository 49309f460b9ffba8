// Benchmarks of perceptrons on dense data, compared with a program that multiplies matrices by hand.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/outside.h"
#include "benchmarks/peak.h"
#include "benchmarks/workloads.h"
#include "engine/nn/executor.h"
#include "engine/nn/models/mlp.h"

namespace gradwire::bench {
namespace {

// A relu perceptron, and samples whose features are all nonzero.
class DenseTask {
 public:
  DenseTask(const std::vector<std::uint32_t>& widths, std::size_t samples)
      : widths_(widths),
        executor_(
            mlp({widths.front(), {widths.begin() + 1, widths.end() - 1}, widths.back(), Activation::kRelu})),
        index_(widths.front()),
        label_(samples),
        value_(normal_vector<float>(samples * widths.front(), 5)) {
    std::iota(index_.begin(), index_.end(), 0u);
    for (std::size_t s = 0; s < samples; ++s) label_[s] = static_cast<Token>(s % widths.back());
    Random random(1, "dense start");
    for (std::size_t j = 0; j < executor_.dim(); ++j)
      x_.push_back(static_cast<float>(random.normal() / std::sqrt(widths.front())));
    gradient_.resize(x_.size());
  }

  void gradient() {
    const std::size_t in = index_.size();
    loss_ = executor_.loss_and_gradient(
        x_, label_.size(),
        [&](std::size_t s) {
          Example<float> example;
          example.index = index_;
          example.value = std::span<const float>(value_).subspan(s * in, in);
          example.labels = {&label_[s], 1};
          return example;
        },
        gradient_);
  }
  double loss() const { return loss_; }
  const Executor<float>& executor() const { return executor_; }

  // Returns the least work: two products for the first layer and three for each other. Reads the data and the
  // weights, and writes the gradient.
  PeakWork work() const {
    double multiply_adds = 0;
    for (std::size_t l = 0; l + 1 < widths_.size(); ++l)
      multiply_adds += (l == 0 ? 2.0 : 3.0) * widths_[l] * widths_[l + 1];
    const double numbers = static_cast<double>(value_.size() + 2 * x_.size());
    return {multiply_adds * static_cast<double>(label_.size()), numbers * sizeof(float)};
  }

 private:
  const std::vector<std::uint32_t> widths_;
  Executor<float> executor_;
  std::vector<std::uint32_t> index_;
  std::vector<Token> label_;
  std::vector<float> value_;
  AlignedVector<float> x_, gradient_;
  double loss_ = 0;
};

// Prints the least and the median processor time of a gradient of a relu network in PyTorch, on one thread,
// for the fastest of some sizes of a chunk. Arguments: samples, repeats, widths.
constexpr const char* kPyTorchScript = R"(
import statistics, sys, time, torch
import torch.nn.functional as F
m, repeats, *widths = map(int, sys.argv[1:])
torch.set_num_threads(1)
x, y = torch.randn(m, widths[0]), torch.randint(widths[-1], (m,))
layers = [l for a, b in zip(widths, widths[1:]) for l in (torch.nn.Linear(a, b), torch.nn.ReLU())]
net = torch.nn.Sequential(*layers[:-1])
best = None
for chunk in (m, 256, 512, 1024):
    times = []
    for _ in range(repeats + 1):
        start = time.process_time()
        net.zero_grad(set_to_none=True)
        for k in range(0, m, chunk):
            F.cross_entropy(net(x[k:k + chunk]), y[k:k + chunk], reduction="sum").backward()
        times.append(1e3 * (time.process_time() - start))
    best = min(best or times[1:], times[1:], key=min)
print(f"RESULT PyTorch {torch.__version__} min_ms={min(best)} med_ms={statistics.median(best)}")
)";

// Returns the figures of PyTorch in ms, or nullopt if no python3 has it.
std::optional<Series> pytorch_ms(std::size_t samples, std::uint32_t repeats,
                                 const std::vector<std::uint32_t>& widths) {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    std::vector<std::string> command = {python, "-c", kPyTorchScript, std::to_string(samples),
                                        std::to_string(repeats)};
    for (const std::uint32_t width : widths) command.push_back(std::to_string(width));
    for (const std::string& line : result_lines(command).value_or(std::vector<std::string>{})) {
      Series ms;
      ms.add(figure_in(line, "min_ms").value_or(0));
      ms.add(figure_in(line, "med_ms").value_or(0));
      return ms;
    }
  }
  return std::nullopt;
}

struct DenseCase {
  std::vector<std::uint32_t> widths;
  double at_most;         // largest allowed ratio to the program by hand
  double share_at_least;  // smallest allowed share of the peak
};

}  // namespace

void engine_dense(Bench& bench) {
  const std::vector<DenseCase> cases = {{{784, 1024, 10}, 1.05, 0.8},
                                        {{784, 1024, 1024, 10}, 1.05, 0.8},
                                        {{784, 128, 10}, 1, 0},
                                        {{784, 10}, 1, 0}};
  const std::string program = other_program(bench, "dense");
  for (const DenseCase& each : cases) {
    const std::vector<std::uint32_t> widths =
        bench.small() ? std::vector<std::uint32_t>{20, each.widths[1], 10} : each.widths;
    for (const std::size_t samples : {std::size_t{64}, bench.size<std::size_t>(4000, 70)}) {
      DenseTask task(widths, samples);
      const auto step = [&] { task.gradient(); };
      const std::uint32_t steps = steps_for(bench, 0.3, step);
      std::string name = "engine/dense ";
      std::vector<std::string> command;
      if (!program.empty())
        command = {program, std::to_string(samples), std::to_string(std::min<std::size_t>(samples, 500)),
                   std::to_string(steps)};
      for (const std::uint32_t width : widths) {
        name += (width == widths.front() && name.back() == ' ' ? "" : "-") + std::to_string(width);
        if (!program.empty()) command.push_back(std::to_string(width));
      }
      const Peak peak(task.executor().kernels(), 2 * task.executor().dim(), bench.repeats(kComparisonTurns));
      const ProgramComparison figures =
          measure_in_turns(bench.repeats(kComparisonTurns), steps, step, command);
      Row row;
      row.name = name + " b=" + std::to_string(samples);
      row.value = figures.ours;
      row.unit = "ms/gradient";
      row.floor = {peak.seconds(task.work()).times(1e3), each.share_at_least};
      row.note = "relu, fp32, no feature is 0";
      if (figures.theirs) {
        row.versus = {"matrix products by hand", *figures.theirs};
        row.target = {Target::Of::kRatio, each.at_most};
      }
      bench.row(row);
      if (!bench.small() && samples > 64)
        if (const auto theirs = pytorch_ms(samples, bench.repeats(kComparisonTurns), widths)) {
          row.name += ", PyTorch";
          row.versus = {"PyTorch", *theirs};
          row.target = {Target::Of::kRatio, 1};
          row.floor.reset();
          bench.row(row);
        }
      bench.keep(task.loss());
    }
  }
}

}  // namespace gradwire::bench
