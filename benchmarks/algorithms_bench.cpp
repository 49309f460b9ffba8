// Benchmarks of the rounds of three algorithms, simulated in this process on problems from papers.
#include <algorithm>
#include <cmath>

#include "benchmarks/benchmarks.h"
#include "benchmarks/workloads.h"
#include "engine/data/readers/synthetic.h"
#include "engine/problems/problem.h"
#include "engine/problems/quadratic.h"

namespace gradwire::bench {
namespace {

ProblemSpec tridiagonal(std::uint32_t n, std::size_t d) {
  ProblemSpec spec;
  spec.problem = Quadratic{{.dim = d, .lambda = 1e-3, .heterogeneity = 0.1}};
  spec.clients = n;
  return spec;
}

// EF21 with Top-1 on tridiagonal quadratics, written with plain arrays and loops. It is the reference of
// methods/quadratic.
class BareQuadratics {
 public:
  BareQuadratics(const QuadraticFamily& family, std::vector<double> x0, double gamma)
      : n_(family.clients()),
        d_(family.dim()),
        gamma_(gamma),
        x_(std::move(x0)),
        g_(d_),
        r_(d_),
        g_of_(n_ * d_) {
    for (std::uint32_t i = 0; i < n_; ++i) {
      diagonal_.push_back(family.nu(i) / 2 + family.shift());
      neighbour_.push_back(-family.nu(i) / 4);
      linear_.push_back(family.linear(i));
    }
  }

  void round() {
    for (std::size_t i = 0; i < n_; ++i) {
      double* g_i = g_of_.data() + i * d_;
      const double a = diagonal_[i], b = neighbour_[i];
      r_[0] = a * x_[0] + b * x_[1] - linear_[i] - g_i[0];
      for (std::size_t j = 1; j + 1 < d_; ++j) r_[j] = a * x_[j] + b * (x_[j - 1] + x_[j + 1]) - g_i[j];
      r_[d_ - 1] = a * x_[d_ - 1] + b * x_[d_ - 2] - g_i[d_ - 1];
      std::size_t largest = 0;
      double size = -1;
      for (std::size_t j = 0; j < d_; ++j) {
        const double r = std::abs(r_[j]);
        largest = r > size ? j : largest;
        size = std::max(r, size);
      }
      g_i[largest] += r_[largest];
      g_[largest] += r_[largest] / static_cast<double>(n_);
    }
    for (std::size_t j = 0; j < d_; ++j) x_[j] -= gamma_ * g_[j];
  }
  std::span<const double> x() const { return x_; }

 private:
  std::size_t n_, d_;
  double gamma_;
  std::vector<double> x_, g_, r_, g_of_, diagonal_, neighbour_, linear_;
};

Oracles<double> oracles_of(const QuadraticFamily& family) {
  Oracles<double> oracles;
  for (std::uint32_t i = 0; i < family.clients(); ++i)
    oracles.push_back(std::make_unique<QuadraticOracle<double>>(family, i));
  return oracles;
}

}  // namespace

void algorithms_quadratic(Bench& bench) {
  const ProblemSpec spec = tridiagonal(10, 100);
  const QuadraticFamily family(std::get<Quadratic>(spec.problem).shape, spec.clients, spec.seed);
  const Oracles<double> oracles = oracles_of(family);
  const std::vector<double> x0 = model_start(spec, {});
  const Smoothness constants = family.total({});
  const auto run_context = make_run_context(ef21_top1("theory"), spec.clients, x0, &constants);
  Simulation<double> simulation(run_context, oracles);
  BareQuadratics bare(family, x0, std::stod(run_context->algorithm.step_size));
  simulation.run(2, 0);  // creates the clients, which happens at their first request
  const std::uint32_t rounds = bench.small() ? 100 : 20'000;
  const auto series =
      interleave(bench.repeats(9), {[&] { return seconds_of([&] { simulation.run(rounds, 0); }); },
                                    [&] {
                                      return seconds_of([&] {
                                        for (std::uint32_t k = 0; k < rounds; ++k) bare.round();
                                      });
                                    }});
  bench.keep_all(simulation.model());
  bench.keep_all(bare.x());
  Row row;
  row.name = "methods/quadratic";
  row.value = series[0].times(1e6 / rounds);
  row.unit = "us/round";
  row.versus = {"bare loop", series[1].times(1e6 / rounds)};
  row.target = {Target::Of::kRatio, 4};
  row.note = "EF21 Top-1, tridiagonal quadratics, n = 10, d = 100, one thread; 10 us are 100,000 rounds/s";
  bench.row(row);
}

void algorithms_permk(Bench& bench) {
  const ProblemSpec spec = tridiagonal(bench.small() ? 100 : 10'000, 1000);
  const QuadraticFamily family(std::get<Quadratic>(spec.problem).shape, spec.clients, spec.seed);
  const Oracles<double> oracles = oracles_of(family);
  const Smoothness constants = family.total({});
  AlgorithmSpec algorithm;
  algorithm.name = "marina";
  algorithm.compressor = "permk";
  const auto run_context = make_run_context(algorithm, spec.clients, model_start(spec, {}), &constants);
  Simulation<double> simulation(run_context, oracles, 2);
  simulation.run(1, 0);
  const std::uint32_t rounds = bench.small() ? 2 : 20;
  const auto series =
      interleave(bench.repeats(5), {[&] { return seconds_of([&] { simulation.run(rounds, 0); }); }});
  bench.keep_all(simulation.model());
  Row row;
  row.name = "methods/permk";
  row.value = series[0].times(1e3 / rounds);
  row.unit = "ms/round";
  row.target = {Target::Of::kValue, 20};
  row.note = "MARINA PermK, tridiagonal quadratics, n = " + std::to_string(spec.clients) +
             ", d = 1000, two threads; 20 ms are 50 rounds/s";
  bench.row(row);
}

void algorithms_fednl(Bench& bench) {
  struct FedNlCase {
    const char* data;
    double target_ms;
  };
  for (const FedNlCase& c : {FedNlCase{"phishing", 4}, FedNlCase{"w8a", 60}}) {
    const NamedData named = libsvm_or_like(c.data, bench.small());
    ProblemSpec spec;
    auto& logistic = spec.problem.emplace<Logistic>();
    logistic.regularizer = Regularizer::kL2;
    logistic.lambda = 1e-3;
    spec.clients = bench.small() ? 4 : 142;
    const DataSchema schema = {named.data.columns, distinct_labels(named.data)};
    SplitSpec split;
    split.clients = spec.clients;
    const std::vector<ClientDataset> parts = share_samples(named.data, nullptr, split).all_parts();
    Oracles<double> oracles;
    for (std::uint32_t i = 0; i < spec.clients; ++i)
      oracles.push_back(make_oracle<double>(spec, schema, parts[i], i));
    const std::size_t d = named.data.columns;
    const Smoothness constants = smoothness(spec, schema, parts, {});
    AlgorithmSpec algorithm;
    algorithm.name = "fednl";
    algorithm.compressor = "randseqk:k=" + std::to_string(8 * d);
    algorithm.parameters = {{"option", "1"}};
    const auto run_context = make_run_context(algorithm, spec.clients, std::vector<double>(d), &constants);
    Simulation<double> simulation(run_context, oracles);
    simulation.run(1, 0);
    const std::uint32_t rounds = bench.small() ? 2 : 20;
    const auto series =
        interleave(bench.repeats(5), {[&] { return seconds_of([&] { simulation.run(rounds, 0); }); }});
    simulation.run(0, 1);
    bench.keep_all(simulation.model());
    Row row;
    row.name = std::string("methods/fednl ") + c.data;
    row.value = series[0].times(1e3 / rounds);
    row.unit = "ms/round";
    row.target = {Target::Of::kValue, c.target_ms};
    row.note = named.name + ", RandSeqK of 8 d entries, " + std::to_string(spec.clients) +
               " clients, one thread; afterwards ||grad f||^2 = " +
               std::to_string(simulation.last_record().grad_norm_sq.value_or(0));
    bench.row(row);
  }
}

}  // namespace gradwire::bench
