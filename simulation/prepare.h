// Turns an experiment file into everything that a run needs, independent of the transport.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "config/client_latency.h"
#include "config/experiment_file.h"
#include "config/run_plan.h"
#include "engine/client_objectives.h"
#include "engine/data/readers/source.h"
#include "mpi/ranks.h"
#include "samples/local_problem.h"
#include "simulation/monitor.h"

namespace gradwire {

// Objectives of all clients in one precision. They are made before a run, and several runs may share them.
struct Functions {
  std::shared_ptr<const ClientObjectives<float>> fp32;
  std::shared_ptr<const ClientObjectives<double>> fp64;

  template <class Real>
  auto& of() {
    if constexpr (std::is_same_v<Real, float>)
      return fp32;
    else
      return fp64;
  }
};

// Parts of a run that the program brings, in place of those that the experiment names.
struct Brought {
  Functions functions = {};     // for problem.kind = "custom": those of all clients, in the run's precision
  Reading reading = {};         // reads problem.data and problem.test
  std::vector<double> x0 = {};  // start point, shape (d); empty for that of run.x0
  std::vector<double> smoothness = {};  // L_i of `functions`, shape (n); empty if they are unknown
  // Called before each computation of an oracle, by the thread that computes; may throw. Empty for none.
  std::function<void()> before_gradient = {};
};

// Plan of a run together with its data.
struct Prepared : RunPlan {
  ProblemSpec problem;
  SharedSamples data;                     // empty if the objectives are generated
  Preprocessing preprocessing;            // the one of `data`, which may be empty
  Functions functions;                    // null if they must be made from the data
  std::function<void()> before_gradient;  // as brought
  ClientLatency seconds;                  // `clients.latency`, with the content of its file
  std::optional<MonitorPlan> monitor;     // `run.monitor`
  bool has_parts_of_program = false;  // true if the program brings functions, a start point or an algorithm
};

// Returns the speeds of `clients.latency`; reads its file. Throws ExperimentError.
ClientLatency client_latency(const LoadedExperiment& loaded);

// Reads the data, and resolves every setting to a number. Throws ExperimentError or DataError (one line).
// With `ranks` it is collective and must be called in all_or_none(); each rank reads the samples of its
// clients, and all get the same numbers. `model` is the schema of the clients that trained a model; the data
// may then lack some of its features, labels or letters. `given` is the preprocessing of the model.
Prepared prepare(const LoadedExperiment& loaded, Ranks* ranks = nullptr, const DataSchema* model = nullptr,
                 const Preprocessing& given = {}, const Brought& brought = {});

// Makes the plan for data that were read before. Uses the constants in `known`, or stores them there if they
// were computed from the data alone. `x0` is as in Brought.
RunPlan plan_on(const LoadedExperiment& loaded, const ProblemSpec& problem, const SharedSamples& data,
                std::optional<Smoothness>& known, const std::vector<double>& x0 = {});

// Throws DataError if data have another feature than a model's training data had in that place. Empty names
// are unknown.
void check_feature_names(std::span<const std::string> data, std::span<const std::string> model);

}  // namespace gradwire
