// Costs of the capabilities of an oracle (gradwire/oracle.h), compared with its plain gradient.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "benchmarks/benchmarks.h"
#include "benchmarks/tasks.h"
#include "benchmarks/workloads.h"
#include "engine/problems/logistic.h"

namespace gradwire::bench {
namespace {

// A network at one point, with one batch.
class CapabilitiesTask {
 public:
  CapabilitiesTask(std::string name, const Network& network, Windows windows, std::size_t batch)
      : name_(std::move(name) + " b=" + std::to_string(batch)),
        executor_(network),
        samples_(std::move(windows)),
        index_(batch),
        gradient_(network.dim()),
        other_(network.dim()) {
    const std::vector<double> start = network.start(1);
    x_.assign(start.begin(), start.end());
    Random random(1, "bench powers");
    for (std::uint32_t& i : index_) i = static_cast<std::uint32_t>(random.below(samples_.size()));
    for (std::size_t j = 0; j < x_.size(); ++j) direction_.push_back(static_cast<float>(random.normal()));
  }
  CapabilitiesTask(const CapabilitiesTask&) = delete;

  const std::string& name() const { return name_; }
  std::size_t dim() const { return x_.size(); }
  double cost(const Coordinates& wanted) const { return executor_.cost(wanted); }

  double plain() { return executor_.loss_and_gradient(x_, index_.size(), at(), gradient_); }
  double loss() { return executor_.loss(x_, index_.size(), at()); }
  std::optional<double> on(const GradientOptions& options) {
    return executor_.compute(x_, index_.size(), at(), gradient_, options);
  }
  double directional() { return executor_.directional(x_, direction_, index_.size(), at()).derivative; }
  double clipped() {
    return executor_.scaled_gradients(
        x_, index_.size(), at(), [](double square) { return std::min(1.0, 1 / std::sqrt(square)); },
        gradient_);
  }
  double two() { return executor_.two_gradients(x_, direction_, index_.size(), at(), gradient_, other_).y; }
  double two_calls() {
    return executor_.loss_and_gradient(x_, index_.size(), at(), gradient_) +
           executor_.loss_and_gradient(direction_, index_.size(), at(), other_);
  }

 private:
  Executor<float>::ExampleAt at() const {
    return [this](std::size_t k) { return samples_[index_[k]]; };
  }

  std::string name_;
  Executor<float> executor_;
  TextSamples<float> samples_;
  std::vector<std::uint32_t> index_;
  AlignedVector<float> x_, gradient_, other_, direction_;
};

// Returns a body that repeats the call for about a millisecond. The body returns the seconds of one call.
BenchBody timed(Bench& bench, const std::function<void()>& call) {
  call();
  const double once = seconds_of(call);
  const int calls = bench.small() ? 1 : static_cast<int>(std::clamp(1e-3 / once, 1.0, 1000.0));
  return [call, calls] {
    return seconds_of([&] {
             for (int k = 0; k < calls; ++k) call();
           }) /
           calls;
  };
}

constexpr std::uint32_t kTurns = 150;

// Compares an optional operation with a reference. Returns the ratio of the medians.
double compare(Bench& bench, const std::string& name, const std::function<void()>& power, const char* what,
               const std::function<void()>& plain, double at_most, const std::string& note = {}) {
  const auto series = interleave(bench.repeats(kTurns), {timed(bench, power), timed(bench, plain)});
  Row row;
  row.name = "engine/powers " + name;
  row.value = series[0].times(1e6);
  row.unit = "us";
  row.versus = {what, series[1].times(1e6)};
  row.target = {Target::Of::kRatio, at_most};
  row.note = note;
  bench.row(row);
  return series[0].median() / series[1].median();
}

// Reports a figure without a reference.
void alone(Bench& bench, const std::string& name, const Series& value, const char* unit, double at_most) {
  Row row;
  row.name = "engine/powers " + name;
  row.value = value;
  row.unit = unit;
  row.target = {Target::Of::kValue, at_most};
  bench.row(row);
}

std::string whole_percent(double share) { return std::to_string(std::lround(share * 100)) + " %"; }

// Compares the time of a part of the gradient with the time of the whole gradient, and with the predicted
// cost.
void compare_part(Bench& bench, CapabilitiesTask& task, const std::string& name, const Coordinates& wanted,
                  double at_most) {
  const double predicted = task.cost(wanted);
  const GradientOptions options{.wanted = wanted};
  const double measured = compare(
      bench, name + ", " + task.name(), [&] { bench.keep(*task.on(options)); }, "all",
      [&] { bench.keep(task.plain()); }, at_most, "predicted " + whole_percent(predicted));
  Series error;
  error.add(std::abs(predicted / measured - 1));
  alone(bench, "prediction of " + name + ", " + task.name(), error, "of what it took", 0.25);
}

void parts(Bench& bench, CapabilitiesTask& letters, std::size_t hidden, CapabilitiesTask& gpt) {
  const std::size_t d = letters.dim(), last = 27 * (hidden + 1), table = 27 * 64, K = d / 100;
  compare_part(bench, gpt, "last layer", Coordinates::range(gpt.dim() - 65 * 25, 65 * 25), 0.4);
  compare_part(bench, letters, "last layer", Coordinates::range(d - last, last), 0.4);
  compare_part(bench, letters, "1 % in a row of the first layer", Coordinates::range(table + hidden * 300, K),
               0.6);
  compare_part(bench, letters, "1 % in a row round the end", Coordinates::cyclic(d - K / 2, K, d), 1.03);
  compare_part(bench, gpt, "1 % in a row of the middle", Coordinates::range(gpt.dim() / 2, gpt.dim() / 100),
               1.03);
  std::vector<std::uint32_t> list;
  Random random(1, "bench RandK");
  for (std::uint32_t j = 0; j < d; ++j)
    if (random.uniform() < 0.01) list.push_back(j);
  compare_part(bench, letters, "1 % anywhere", Coordinates::list(list), 1.03);
}

// Measures the time between setting a token and the return of the call that it stops.
void stops(Bench& bench, CapabilitiesTask& task) {
  std::atomic<bool> stop = false;
  const GradientOptions options{.stop = &stop};
  compare(
      bench, "stop token that is never set, " + task.name(), [&] { bench.keep(*task.on(options)); },
      "no token", [&] { bench.keep(task.plain()); }, 1.01);
  using Clock = std::chrono::steady_clock;
  Series latency;
  for (std::uint32_t k = 0; k < bench.size(60u, 3u); ++k) {
    stop = false;
    Clock::time_point ended;
    std::atomic<bool> runs = false;
    std::thread thread([&] {
      runs = true;
      while (task.on(options)) continue;
      ended = Clock::now();
    });
    while (!runs) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(500 + 7 * k));
    const Clock::time_point told = Clock::now();
    stop = true;
    thread.join();
    latency.add(std::chrono::duration<double>(ended - told).count() * 1e6);
  }
  alone(bench, "until a token stops the call, " + task.name(), latency, "us", 50);
}

void overlap(Bench& bench, CapabilitiesTask& task) {
  std::size_t ranges = 0;
  GradientOptions options;
  options.finished = [&](CoordinateRange) { ++ranges; };
  compare(
      bench, "hook for finished ranges, " + task.name(), [&] { bench.keep(*task.on(options)); }, "no hook",
      [&] { bench.keep(task.plain()); }, 1.03);
  Series share;
  for (std::uint32_t k = 0; k < bench.repeats(kTurns); ++k) {
    using Clock = std::chrono::steady_clock;
    std::optional<Clock::time_point> first;
    options.finished = [&](CoordinateRange) { first = first ? first : Clock::now(); };
    const Clock::time_point start = Clock::now();
    bench.keep(*task.on(options));
    share.add(std::chrono::duration<double>(*first - start).count() /
              std::chrono::duration<double>(Clock::now() - start).count());
  }
  alone(bench, "until the first range, " + task.name(), share, "of the gradient", 0.5);
}

void random_paths(Bench& bench, CapabilitiesTask& task) {
  std::uint64_t key = 0;
  const auto half = timed(bench, [&] { bench.keep(*task.on({.paths = {.share = 0.5, .key = ++key}})); });
  const auto plain = timed(bench, [&] { bench.keep(task.plain()); });
  const auto forward = timed(bench, [&] { bench.keep(task.loss()); });
  const auto series = interleave(bench.repeats(kTurns), {half, plain, forward});
  Row row;
  row.name = "engine/powers half of the paths backward, " + task.name();
  row.value = series[0].minus(series[2]).times(1e6);
  row.unit = "us";
  row.versus = {"all paths", series[1].minus(series[2]).times(1e6)};
  row.target = {Target::Of::kRatio, 0.7};
  bench.row(row);
}

void others(Bench& bench, CapabilitiesTask& task) {
  compare(
      bench, "derivative in a direction, " + task.name(), [&] { bench.keep(task.directional()); },
      "value alone", [&] { bench.keep(task.loss()); }, 2.5);
  compare(
      bench, "clipped gradients of samples, " + task.name(), [&] { bench.keep(task.clipped()); },
      "plain gradient", [&] { bench.keep(task.plain()); }, 1.5);
  compare(
      bench, "gradients at two points, " + task.name(), [&] { bench.keep(task.two()); }, "two calls",
      [&] { bench.keep(task.two_calls()); }, 1.03);
}

// Measures logistic regression with its regularizer, on all samples.
void linear(Bench& bench) {
  const NamedData named = libsvm_or_like("a9a", bench.small());
  const std::size_t d = named.data.columns;
  LogisticOracle<double> oracle(ClientDataset{named.data, {}}, d, distinct_labels(named.data),
                                Regularizer::kNonconvex, 0.1);
  const std::vector<double> x = normal_vector<double>(d, 1), v = normal_vector<double>(d, 2);
  std::vector<double> gradient(d), other(d);
  const auto plain = [&] { bench.keep(oracle.loss_and_gradient(x, {}, gradient)); };
  const std::string name = "logistic " + named.name;
  compare(
      bench, "derivative in a direction, " + name,
      [&] { bench.keep(oracle.directional(x, v, {}).derivative); }, "value alone",
      [&] { bench.keep(oracle.loss(x, {})); }, 2.5);
  compare(
      bench, "clipped gradients of samples, " + name,
      [&] { bench.keep(oracle.clipped_gradient(x, {}, 1, gradient)); }, "plain gradient", plain, 1.5);
  compare(
      bench, "gradients at two points, " + name,
      [&] { bench.keep(oracle.two_gradients(x, v, {}, gradient, other).y); }, "two calls",
      [&] {
        plain();
        bench.keep(oracle.loss_and_gradient(v, {}, other));
      },
      1);
}

// Compares the gradient of a deep transformer within a quarter of its memory for activations with the
// gradient without a limit.
void recomputation(Bench& bench) {
  DeepTransformer deep(bench.size<std::size_t>(48, 2));
  std::vector<float> expected(deep.x.size()), gradient(deep.x.size());
  Executor<float> plain(deep.network);
  deep.gradient(plain, expected);
  const auto compare_with = [&](const std::string& name, ActivationBudget budget) {
    deep.network.limit_activations(budget);
    Executor<float> executor(deep.network);
    deep.gradient(executor, gradient);
    compare(
        bench, name, [&] { deep.gradient(executor, gradient); }, "without a budget",
        [&] { deep.gradient(plain, expected); }, 1.4,
        deep.title() + "; arena " + std::to_string(executor.arena_bytes() / 1024) + " KB of " +
            std::to_string(plain.arena_bytes() / 1024) +
            (gradient == expected ? ", same bits" : ", OTHER BITS"));
  };
  compare_with("recomputation in a quarter of the memory",
               ActivationBudget(plain.arena_bytes() / (bench.small() ? 1 : 4)));
  compare_with("recomputation, sqrt schedule", ActivationBudget::sqrt());
}

}  // namespace

void engine_capabilities(Bench& bench) {
  const Windows names = names_windows(names_text(bench.small()));
  const Windows text = shakespeare_windows(shakespeare_text(bench.small()), 8);
  const std::size_t wide = bench.size<std::size_t>(1024, 64);
  const auto letters = [&](std::size_t hidden, std::size_t b) {
    return CapabilitiesTask("letters e=" + std::to_string(hidden), letters_network(hidden), names, b);
  };
  CapabilitiesTask letters1 = letters(wide, 1), letters64 = letters(wide, 64), narrow = letters(64, 64);
  CapabilitiesTask gpt1("gpt", gpt_network(), text, 1), gpt4("gpt", gpt_network(), text, 4),
      gpt64("gpt", gpt_network(), text, 64);
  parts(bench, letters64, wide, gpt64);
  parts(bench, letters1, wide, gpt1);
  stops(bench, gpt1);
  stops(bench, gpt64);
  for (CapabilitiesTask* task : {&gpt1, &gpt4}) overlap(bench, *task);
  for (CapabilitiesTask* task : {&letters64, &narrow}) random_paths(bench, *task);
  for (CapabilitiesTask* task : {&gpt1, &gpt64, &letters1, &letters64, &narrow}) others(bench, *task);
  recomputation(bench);
  linear(bench);
}

}  // namespace gradwire::bench
