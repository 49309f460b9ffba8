#include "benchmarks/workloads.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "base/random.h"
#include "compressors/compressor.h"
#include "simulation/fault_simulation.h"
#include "simulation/parallel_simulation.h"

namespace gradwire::bench {
namespace {

// Returns random samples with one-hot codes of `groups` attributes, like those of a9a.
Dataset one_hot_rows(std::size_t rows, std::size_t columns, std::size_t groups) {
  Random random(1, "bench one-hot rows");
  std::vector<double> teacher(columns);
  for (double& w : teacher) w = random.normal();
  Dataset data;
  data.columns = columns;
  for (std::size_t r = 0; r < rows; ++r) {
    double margin = 0;
    for (std::size_t g = 0; g < groups; ++g) {
      const std::size_t first = g * columns / groups, end = (g + 1) * columns / groups;
      const std::size_t column = first + random.below(end - first);
      data.column.push_back(static_cast<std::uint32_t>(column));
      data.value.push_back(1);
      margin += teacher[column];
    }
    data.row_start.push_back(data.column.size());
    data.label.push_back(margin + random.normal() > 0 ? 1 : -1);
  }
  return data;
}

template <class Real>
std::vector<Oracle<Real>*> pointers(const Oracles<Real>& oracles) {
  std::vector<Oracle<Real>*> raw;
  for (const auto& oracle : oracles) raw.push_back(oracle.get());
  return raw;
}

template <class Clients, class Real>
std::unique_ptr<Transport<Real>> make_clients(LoopHooks<Real>& hooks, std::function<double()>& shared_seconds,
                                              auto&&... arguments) {
  auto clients = std::make_unique<Clients>(std::move(arguments)...);
  hooks.evaluate = [raw = clients.get()](View<Real> x, Evaluation<Real>& to) { raw->evaluate(x, to); };
  if constexpr (requires { clients->shared_seconds(); })
    shared_seconds = [raw = clients.get()] { return raw->shared_seconds(); };
  return clients;
}

FaultSimulationOptions in_process(unsigned threads) {
  FaultSimulationOptions options;
  options.threads = threads;
  return options;
}

}  // namespace

AlgorithmSpec ef21_top1(const std::string& step_size) {
  AlgorithmSpec spec;
  spec.name = "ef21";
  spec.compressor = "topk:k=1";
  spec.step_size = step_size;
  return spec;
}

NamedData libsvm_or_like(const std::string& name, bool small) {
  struct WorkloadShape {
    const char* name;
    std::size_t rows, columns, nonzeros;
  };
  constexpr WorkloadShape kShapes[] = {
      {"a9a", 32561, 123, 14}, {"phishing", 11055, 68, 30}, {"w8a", 49749, 300, 12}};
  constexpr std::size_t kSmallRows = 400;
  for (const WorkloadShape& shape : kShapes) {
    if (name != shape.name) continue;
    if (small) return {one_hot_rows(kSmallRows, shape.columns, shape.nonzeros), "400 rows like " + name};
    try {
      return {read_source("libsvm:" + name, std::filesystem::current_path(), {}), name};
    } catch (const DataError&) {
      return {one_hot_rows(shape.rows, shape.columns, shape.nonzeros),
              "synthetic rows of " + name + "'s shape (file " + name + " is missing; set GRADWIRE_DATA)"};
    }
  }
  throw std::logic_error("the shape is not known for " + name);
}

template <class Real>
std::vector<Real> normal_vector(std::size_t count, std::uint64_t seed) {
  Random random(seed, "bench normal vector");
  std::vector<Real> v(count);
  for (Real& entry : v) entry = static_cast<Real>(random.normal());
  return v;
}

template <class Real>
std::shared_ptr<const RunContext<Real>> make_run_context(const AlgorithmSpec& algorithm, std::uint32_t n,
                                                         const std::vector<Real>& x0,
                                                         const Smoothness* constants) {
  auto run_context = std::make_shared<RunContext<Real>>();
  run_context->n = n;
  run_context->d = x0.size();
  run_context->x0 = x0;
  run_context->compressor = uplink_compressor(algorithm, run_context->d, n);
  Theory theory;
  theory.n = n;
  theory.d = run_context->d;
  theory.smoothness = constants;
  std::vector<std::string> warnings;
  run_context->algorithm = resolve(algorithm, theory, warnings);
  return run_context;
}

template <class Real>
Simulation<Real>::Simulation(std::shared_ptr<const RunContext<Real>> run_context,
                             std::shared_ptr<const ClientObjectives<Real>> functions, unsigned threads,
                             RankBinding<Real> binding)
    : run_context_(run_context),
      server_(make_server<Real>(run_context)),
      transport_(server_->may_refuse()
                     ? make_clients<FaultSimulation<Real>>(hooks_, shared_seconds_, std::move(run_context),
                                                           std::move(functions), in_process(threads))
                     : make_clients<ParallelSimulation<Real>>(
                           hooks_, shared_seconds_, std::move(run_context), std::move(functions),
                           ParallelSimulationOptions{.threads = threads}, std::move(binding))) {
  hooks_.on_record = [this](const RoundRecord& record) { record_ = record; };
}

template <class Real>
Simulation<Real>::Simulation(std::shared_ptr<const RunContext<Real>> run_context,
                             const Oracles<Real>& oracles, unsigned threads)
    : Simulation(std::move(run_context), std::make_shared<OracleList<Real>>(pointers(oracles)), threads) {}

template <class Real>
void Simulation<Real>::run(std::uint32_t rounds, std::uint32_t evaluate_every) {
  RoundLimits limits;
  progress_.round = 0;
  limits.rounds = rounds;
  limits.evaluate_every = evaluate_every;
  const AlgorithmTraits& traits = find_algorithm(run_context_->algorithm.name).traits;
  if (run_rounds(*server_, traits, *run_context_, *transport_, progress_, limits, hooks_) !=
      Outcome::kFinished)
    throw std::runtime_error("the run of a benchmark did not finish; its step size is too large");
}

double bare_logistic_pass(const Dataset& data, std::span<const double> sign, double lambda,
                          std::span<const double> x, std::span<double> gradient) {
  std::fill(gradient.begin(), gradient.end(), 0.0);
  const double share = 1.0 / static_cast<double>(data.rows());
  double loss = 0;
  for (std::size_t r = 0; r < data.rows(); ++r) {
    double margin = 0;
    for (std::uint64_t k = data.row_start[r]; k < data.row_start[r + 1]; ++k)
      margin += data.value[k] * x[data.column[k]];
    margin *= sign[r];
    const double e = std::exp(-std::abs(margin));
    loss += std::max(-margin, 0.0) + std::log1p(e);
    const double scale = -sign[r] * share * (margin < 0 ? 1 : e) / (1 + e);
    for (std::uint64_t k = data.row_start[r]; k < data.row_start[r + 1]; ++k)
      gradient[data.column[k]] += scale * data.value[k];
  }
  loss *= share;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double bottom = 1 + x[j] * x[j];
    loss += lambda * x[j] * x[j] / bottom;
    gradient[j] += 2 * lambda * x[j] / (bottom * bottom);
  }
  return loss;
}

std::vector<double> bare_signs(const Dataset& data) {
  const double smallest = *std::min_element(data.label.begin(), data.label.end());
  std::vector<double> sign(data.rows());
  for (std::size_t r = 0; r < data.rows(); ++r) sign[r] = data.label[r] == smallest ? -1 : 1;
  return sign;
}

template std::vector<float> normal_vector(std::size_t, std::uint64_t);
template std::vector<double> normal_vector(std::size_t, std::uint64_t);
template std::shared_ptr<const RunContext<float>> make_run_context(const AlgorithmSpec&, std::uint32_t,
                                                                   const std::vector<float>&,
                                                                   const Smoothness*);
template std::shared_ptr<const RunContext<double>> make_run_context(const AlgorithmSpec&, std::uint32_t,
                                                                    const std::vector<double>&,
                                                                    const Smoothness*);
template class Simulation<float>;
template class Simulation<double>;

}  // namespace gradwire::bench
