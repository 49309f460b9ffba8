// What is measured on: data, and whole simulated runs.
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
#include "engine/oracle.h"
#include "engine/smoothness/smoothness.h"
#include "rounds/round_loop.h"
#include "simulation/parallel_simulation.h"

namespace gradwire::bench {

struct NamedData {
  Dataset data;
  std::string name;  // "a9a", or what stands in for it
};

// A file of the LIBSVM collection (a9a, phishing, w8a), looked up like the data of an experiment; where it is
// not found, samples of its shape: one-hot codes of as many attributes as its rows have nonzeros. `small`:
// 400 of those, without looking for the file.
NamedData libsvm_or_like(const std::string& name, bool small);

// `count` standard normal numbers.
template <class Real>
std::vector<Real> normal_vector(std::size_t count, std::uint64_t seed);

AlgorithmSpec ef21_top1(const std::string& step_size);

// A run of n clients from x0, step sizes resolved. `constants`: null where the step size is a number.
template <class Real>
std::shared_ptr<const RunContext<Real>> make_run_context(const AlgorithmSpec& algorithm, std::uint32_t n,
                                                         const std::vector<Real>& x0,
                                                         const Smoothness* constants = nullptr);

template <class Real>
using Oracles = std::vector<std::unique_ptr<Oracle<Real>>>;

// Server, clients and transport of one run in this process; run() goes on where the last one stopped.
template <class Real>
class Simulation {
 public:
  Simulation(std::shared_ptr<const RunContext<Real>> run_context,
             std::shared_ptr<const ClientObjectives<Real>> functions, unsigned threads = 1,
             RankBinding<Real> binding = {});
  Simulation(std::shared_ptr<const RunContext<Real>> run_context, const Oracles<Real>& oracles,
             unsigned threads = 1);
  void run(std::uint32_t rounds, std::uint32_t evaluate_every);  // 0: no evaluation
  View<Real> model() const { return server_->model(); }
  const RoundRecord& last_record() const { return record_; }  // of the last evaluation
  // Of all rounds so far, at work that threads share. REQUIRES: the algorithm uses all replies of a round.
  double shared_seconds() const { return shared_seconds_(); }

 private:
  std::shared_ptr<const RunContext<Real>> run_context_;
  std::unique_ptr<ServerAlgorithm<Real>> server_;
  LoopHooks<Real> hooks_;
  std::function<double()> shared_seconds_;
  std::unique_ptr<Transport<Real>> transport_;  // as simulate() chooses it
  RunProgress progress_;
  RoundRecord record_;
};

// The pass that everything about a9a is compared with: f(x) = mean_j log(1 + exp(-b_j a_j^T x)) + lambda
// sum_j x_j^2 / (1 + x_j^2) and its gradient over all rows, as one writes it without a framework. `sign`:
// b_j.
double bare_logistic_pass(const Dataset& data, std::span<const double> sign, double lambda,
                          std::span<const double> x, std::span<double> gradient);
std::vector<double> bare_signs(const Dataset& data);

}  // namespace gradwire::bench
