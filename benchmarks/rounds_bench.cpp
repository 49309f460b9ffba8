// Benchmarks of whole simulated runs in this process.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "benchmarks/benchmarks.h"
#include "benchmarks/workloads.h"
#include "engine/data/readers/synthetic.h"
#include "engine/problems/problem.h"

namespace gradwire::bench {
namespace {

constexpr std::size_t kDim = 123;

// Precomputed gradients for measuring the overhead. They are few, so that they stay in the cache.
class GradientBank {
 public:
  GradientBank() : values_(normal_vector<double>(kDim * kCount, 7)) {}
  const double* gradient(std::size_t k) const { return values_.data() + (k % kCount) * kDim; }

 private:
  static constexpr std::size_t kCount = 16;
  std::vector<double> values_;
};

// An oracle that copies precomputed gradients, so that only the framework's work remains.
class ReadyOracle final : public Oracle<double> {
 public:
  ReadyOracle(const GradientBank& bank, std::size_t first) : bank_(bank), next_(first) {}
  std::size_t dim() const override { return kDim; }
  std::size_t sample_count() const override { return 1; }
  double loss_and_gradient(std::span<const double> x, Batch, std::span<double> gradient) override {
    std::memcpy(gradient.data(), bank_.gradient(next_++), kDim * sizeof(double));
    return x[0];
  }

 private:
  const GradientBank& bank_;
  std::size_t next_;
};

// EF21 with Top-1 over the same oracles, in a short version without the framework.
class BareEf21 {
 public:
  BareEf21(Oracles<double>& oracles, double gamma)
      : oracles_(oracles), gamma_(gamma), x_(kDim), g_(kDim), gradient_(kDim), g_of_(oracles.size() * kDim) {}

  void round() {
    for (std::size_t i = 0; i < oracles_.size(); ++i) {
      oracles_[i]->loss_and_gradient(x_, {}, gradient_);
      double* g_i = g_of_.data() + i * kDim;
      std::size_t largest = 0;
      double size = -1;
      for (std::size_t j = 0; j < kDim; ++j) {
        const double r = std::abs(gradient_[j] - g_i[j]);
        largest = r > size ? j : largest;
        size = std::max(r, size);
      }
      const double c = gradient_[largest] - g_i[largest];
      g_i[largest] += c;
      g_[largest] += c / static_cast<double>(oracles_.size());
    }
    for (std::size_t j = 0; j < kDim; ++j) x_[j] -= gamma_ * g_[j];
  }
  std::span<const double> x() const { return x_; }

 private:
  Oracles<double>& oracles_;
  double gamma_;
  std::vector<double> x_, g_, gradient_, g_of_;
};

Oracles<double> ready_oracles(const GradientBank& bank, std::uint32_t n) {
  Oracles<double> oracles;
  for (std::uint32_t i = 0; i < n; ++i) oracles.push_back(std::make_unique<ReadyOracle>(bank, i));
  return oracles;
}

void overhead_row(Bench& bench, std::uint32_t n, std::uint32_t rounds) {
  const GradientBank bank;
  Oracles<double> oracles = ready_oracles(bank, n);
  const std::vector<double> x0(kDim);
  constexpr double kGamma = 1e-6;
  const auto run_context = make_run_context(ef21_top1("1e-6"), n, x0);
  Simulation<double> simulation(run_context, oracles);
  simulation.run(2, 0);  // creates the clients, which happens at their first request
  BareEf21 bare(oracles, kGamma);
  std::vector<double> gradient(kDim);

  const double updates = static_cast<double>(n) * rounds;
  const auto series =
      interleave(bench.repeats(15), {[&] { return seconds_of([&] { simulation.run(rounds, 0); }); },
                                     [&] {
                                       return seconds_of([&] {
                                         for (std::uint32_t k = 0; k < rounds; ++k) bare.round();
                                       });
                                     },
                                     [&] {
                                       return seconds_of([&] {
                                         for (std::uint32_t k = 0; k < rounds; ++k)
                                           for (auto& oracle : oracles)
                                             bench.keep(oracle->loss_and_gradient(x0, {}, gradient));
                                       });
                                     }});
  bench.keep_all(simulation.model());
  bench.keep_all(bare.x());
  const double to_us = 1e6 / updates;
  Row row;
  row.name = "rounds/overhead n=" + std::to_string(n);
  row.value = series[0].minus(series[2]).times(to_us);
  row.unit = "us/update";
  row.versus = {"bare EF21 loop", series[1].minus(series[2]).times(to_us)};
  if (n == 20) row.target = {Target::Of::kValue, 2};
  bench.row(row);
}

// EF21 with Top-1 on a9a, as in experiments/configs/ef21_a9a.toml.
struct A9a {
  static constexpr std::uint32_t kClients = 20;
  static constexpr double kLambda = 0.1;
  std::string name;
  Dataset data;
  ProblemSpec spec;
  DataSchema schema;
  Oracles<double> oracles;
  std::shared_ptr<const RunContext<double>> run_context;

  explicit A9a(bool small) {
    NamedData named = libsvm_or_like("a9a", small);
    name = named.name;
    data = std::move(named.data);
    auto& logistic = spec.problem.emplace<Logistic>();
    logistic.regularizer = Regularizer::kNonconvex;
    logistic.lambda = kLambda;
    spec.clients = kClients;
    schema = {data.columns, distinct_labels(data)};
    SplitSpec split;
    split.clients = kClients;
    const std::vector<ClientDataset> parts = share_samples(data, nullptr, split).all_parts();
    for (std::uint32_t i = 0; i < kClients; ++i)
      oracles.push_back(make_oracle<double>(spec, schema, parts[i], i));
    const Smoothness constants = smoothness(spec, schema, parts, {});
    run_context =
        make_run_context(ef21_top1("theory"), kClients, std::vector<double>(data.columns), &constants);
  }
};

// Returns the seconds of `rounds` steps x <- x - gamma * gradient(x).
template <class Gradient>
double seconds_of_steps(Bench& bench, std::uint32_t rounds, std::size_t d, Gradient&& loss_and_gradient) {
  constexpr double kGamma = 0.05;
  std::vector<double> x(d), gradient(d);
  const double seconds = seconds_of([&] {
    for (std::uint32_t k = 0; k < rounds; ++k) {
      bench.keep(loss_and_gradient(x, gradient));
      for (std::size_t j = 0; j < d; ++j) x[j] -= kGamma * gradient[j];
    }
  });
  bench.keep_all<double>(x);
  return seconds;
}

}  // namespace

void rounds_overhead(Bench& bench) {
  const std::uint32_t updates = bench.size(100000u, 2000u);
  for (const std::uint32_t n : {20u, 100u, 1000u}) overhead_row(bench, n, updates / n);
}

void rounds_a9a(Bench& bench) {
  const A9a a9a(bench.small());
  const std::uint32_t rounds = bench.size(1000u, 3u);
  const std::vector<double> sign = bare_signs(a9a.data);
  ClientDataset whole;
  whole.train = a9a.data;
  const auto one_oracle = make_oracle<double>(a9a.spec, a9a.schema, whole, 0);
  const auto series =
      interleave(bench.repeats(5),
                 {[&] {
                    Simulation<double> simulation(a9a.run_context, a9a.oracles);
                    const double seconds = seconds_of([&] { simulation.run(rounds, 1); });
                    bench.keep_all(simulation.model());
                    return seconds;
                  },
                  [&] {
                    return seconds_of_steps(bench, rounds, a9a.data.columns, [&](auto& x, auto& gradient) {
                      return bare_logistic_pass(a9a.data, sign, A9a::kLambda, x, gradient);
                    });
                  },
                  [&] {
                    return seconds_of_steps(bench, rounds, a9a.data.columns, [&](auto& x, auto& gradient) {
                      return one_oracle->loss_and_gradient(x, {}, gradient);
                    });
                  }});
  Row row;
  row.name = "rounds/a9a";
  row.value = series[0];
  row.unit = "s";
  row.target = {Target::Of::kRatio, 1.5};
  row.versus = {std::to_string(rounds) + " bare passes", series[1]};
  row.note = "ef21, topk:k=1, 20 clients, " + std::to_string(rounds) +
             " rounds, evaluated every round, one thread; " + a9a.name;
  bench.row(row);
  row.name = "rounds/a9a, engine's kernels";
  row.versus = {std::to_string(rounds) + " passes of one oracle", series[2]};
  row.note = "the same run; the passes use one oracle of all rows";
  bench.row(row);
}

void rounds_threads(Bench& bench) {
  const A9a a9a(bench.small());
  const std::uint32_t rounds = bench.size(200u, 3u);
  const auto run = [&](unsigned threads) {
    Simulation<double> simulation(a9a.run_context, a9a.oracles, threads);
    const double seconds = seconds_of([&] { simulation.run(rounds, 1); });
    bench.keep_all(simulation.model());
    return seconds;
  };
  const auto series = interleave(bench.repeats(9), {[&] { return run(2); }, [&] { return run(1); }});
  Row row;
  row.name = "rounds/threads";
  row.value = series[0].times(1e3 / rounds);
  row.unit = "ms/round";
  row.versus = {"one thread", series[1].times(1e3 / rounds)};
  row.note = "ef21, topk:k=1, 20 clients, evaluated every round, two threads; " + a9a.name;
  bench.row(row);
}

void rounds_mnist_shaped(Bench& bench) {
  const std::uint32_t n = bench.size(1000u, 20u), rounds = bench.size(100u, 2u);
  ProblemSpec spec;
  spec.problem = Mlp{};
  spec.clients = n;
  DataSchema schema;
  schema.columns = 784;
  for (int label = 0; label < 10; ++label) schema.labels.push_back(label);
  Oracles<float> oracles;
  for (std::uint32_t i = 0; i < n; ++i) {
    ClientDataset part;
    part.train =
        make_synthetic({.samples = 60, .dim = schema.columns, .classes = 10, .noise = 0.1, .seed = i + 1});
    oracles.push_back(make_oracle<float>(spec, schema, part, i));
  }
  AlgorithmSpec algorithm;
  algorithm.name = "fedavg";
  algorithm.batch = 20;
  algorithm.participation = 10.0 / n;
  algorithm.parameters = {{"local_steps", "5"}, {"local_step_size", "0.01"}};
  const auto run_context = make_run_context(algorithm, n, std::vector<float>(model_dim(spec, schema)));

  const auto run = [&](std::uint32_t evaluate_every) {
    return seconds_of([&] {
      Simulation<float> simulation(run_context, oracles);
      simulation.run(rounds, evaluate_every);
      bench.keep_all(simulation.model());
    });
  };
  const auto series = interleave(bench.repeats(5), {[&] { return run(0); }, [&] { return run(rounds); }});
  Row row;
  row.name = "rounds/mnist_shaped";
  row.value = series[0];
  row.unit = "s";
  row.target = {Target::Of::kValue, 0.2};
  row.note = "fedavg, 784 x 10, " + std::to_string(n) +
             " clients of 60 samples, 10 per round, 5 local steps of batch 20, fp32, " +
             std::to_string(rounds) + " rounds, one thread, no evaluation";
  bench.row(row);
  row.name += " evaluated";
  row.value = series[1];
  row.target.reset();
  row.note = "the same, evaluated on all samples before the first and after the last round";
  bench.row(row);
}

}  // namespace gradwire::bench
