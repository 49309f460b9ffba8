// gradwire optimum: the constants of an experiment's problem, its minimum, and the step sizes that theory
// gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithms.h"
#include "base/log.h"
#include "config/experiment_file.h"
#include "config/run_plan.h"

namespace gradwire {

// An algorithm on this problem, with the numbers that theory gives.
struct FittedAlgorithm {
  std::string algorithm;
  AlgorithmSpec spec;  // as an experiment file has it: "theory" in place of a number
  double step_size = 0;
  bool by_theory = false;  // false if step_size is the algorithm's default number
  Options others;          // further parameters that theory gave
  std::string trouble;     // one line on why the algorithm does not fit; empty if it does
};

struct OptimumReport {
  std::string problem;  // problem.kind
  std::uint32_t n = 0;
  std::size_t d = 0;
  std::optional<double> f_star, grad_norm;  // grad_norm is ||grad f(x*)||
  std::string no_f_star;                    // why f* is not known; empty if it is
  Smoothness smoothness;
  std::vector<FittedAlgorithm> steps;  // in the order of gradwire list

  // Returns L / mu, or nullopt if f is not known to be strongly convex.
  std::optional<double> condition() const;
};

// Makes a plan with the constants of the problem, whatever the algorithm of the experiment needs. Throws
// ExperimentError, DataError.
RunPlan plan_with_constants(LoadedExperiment loaded);

// Returns the numbers that theory gives an algorithm in place of that of the experiment `own`. `plan` has the
// constants of its problem. `parameters` replace those of `own` if given.
FittedAlgorithm fit_algorithm(const AlgorithmInfo& algorithm, const ExperimentSpec& own, const RunPlan& plan,
                              const std::optional<Options>& parameters = std::nullopt);

// Computes the report from the data of the experiment, and keeps f* in the cache of FStars. `log` receives
// warnings. Throws ExperimentError, DataError.
OptimumReport report_optimum(const std::filesystem::path& file, const std::vector<std::string>& sets,
                             const Log& log);

// Return the report as a table for people, and as a JSON object.
std::string optimum_text(const OptimumReport& report);
std::string optimum_json(const OptimumReport& report);

}  // namespace gradwire
