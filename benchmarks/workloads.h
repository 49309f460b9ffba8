// Data and simulated runs that benchmarks measure.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "engine/client_objectives.h"
#include "engine/data/dataset.h"
#include "engine/data/readers/source.h"
#include "engine/smoothness/smoothness.h"
#include "gradwire/oracle.h"
#include "rounds/round_loop.h"
#include "simulation/parallel_simulation.h"

namespace gradwire::bench {

struct NamedData {
  Dataset data;
  std::string name;  // "a9a", or its replacement
};

// Reads a file of the LIBSVM collection (a9a, phishing, w8a) from the usual folders of data. If it is
// missing, generates samples of the same shape, with as many one-hot attributes as the file has nonzeros per
// row. With `small`, generates 400 samples without looking for the file.
NamedData libsvm_or_like(const std::string& name, bool small);

// Returns `count` standard normal numbers.
template <class Real>
std::vector<Real> normal_vector(std::size_t count, std::uint64_t seed);

AlgorithmSpec ef21_top1(const std::string& step_size);

// Returns the context of a run with n clients that starts at x0. Its step sizes are resolved. `constants` may
// be null if the step size is a number.
template <class Real>
std::shared_ptr<const RunContext<Real>> make_run_context(const AlgorithmSpec& algorithm, std::uint32_t n,
                                                         const std::vector<Real>& x0,
                                                         const Smoothness* constants = nullptr);

template <class Real>
using Oracles = std::vector<std::unique_ptr<Oracle<Real>>>;

// Server, clients and transport of one run in this process. run() continues from the model of the last call.
template <class Real>
class Simulation {
 public:
  Simulation(std::shared_ptr<const RunContext<Real>> run_context,
             std::shared_ptr<const ClientObjectives<Real>> functions, unsigned threads = 1,
             RankBinding<Real> binding = {});
  Simulation(std::shared_ptr<const RunContext<Real>> run_context, const Oracles<Real>& oracles,
             unsigned threads = 1);
  void run(std::uint32_t rounds, std::uint32_t evaluate_every);  // 0 turns evaluations off
  View<Real> model() const { return server_->model(); }
  const RoundRecord& last_record() const { return record_; }  // the last evaluation
  // Returns the seconds, summed over all rounds so far, of the work that threads share. REQUIRES: the
  // algorithm uses all replies of a round.
  double shared_seconds() const { return shared_seconds_(); }

 private:
  std::shared_ptr<const RunContext<Real>> run_context_;
  std::unique_ptr<ServerAlgorithm<Real>> server_;
  LoopHooks<Real> hooks_;
  std::function<double()> shared_seconds_;
  std::unique_ptr<Transport<Real>> transport_;  // has the type that simulate() uses
  RunProgress progress_;
  RoundRecord record_;
};

// Computes f(x) = mean_j log(1 + exp(-b_j a_j^T x)) + lambda sum_j x_j^2 / (1 + x_j^2) and its gradient over
// all rows, with plain loops and no framework. It is the reference of all figures about a9a. `sign` holds the
// b_j.
double bare_logistic_pass(const Dataset& data, std::span<const double> sign, double lambda,
                          std::span<const double> x, std::span<double> gradient);
std::vector<double> bare_signs(const Dataset& data);

}  // namespace gradwire::bench
