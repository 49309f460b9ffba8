// From an experiment file to everything that a run needs and that does not depend on the transport.
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "config/client_seconds.h"
#include "config/experiment_file.h"
#include "config/run_plan.h"
#include "engine/client_objectives.h"
#include "engine/data/readers/source.h"
#include "mpi/ranks.h"
#include "simulation/monitor.h"

namespace gradwire {

// The functions of all clients, made before a run and shared with others; of one precision.
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

// The plan of a run whose data are at hand.
struct Prepared : RunPlan {
  ProblemSpec problem;
  SharedSamples data;                  // empty where the functions are made
  Functions functions;                 // null: to be made of the data
  ClientSeconds seconds;               // of clients.seconds, with what its file holds
  std::optional<MonitorPlan> monitor;  // of run.monitor
};

// Of clients.seconds; reads its file. Throws ExperimentError.
ClientSeconds client_seconds(const LoadedExperiment& loaded);

// Reads the data and resolves every number. Throws ExperimentError or DataError (one line). With `ranks`
// collective, and to be called in all_or_none(): each rank reads the samples of its clients, and all get the
// same numbers. `model` is the schema of the clients that trained a model; the data may then lack some of
// its features, labels or letters.
Prepared prepare(const LoadedExperiment& loaded, Ranks* ranks = nullptr, const DataSchema* model = nullptr);

// The same of data that were read before. `known`, the constants, are taken where they are there, else left
// there where they were computed from the data alone.
RunPlan plan_on(const LoadedExperiment& loaded, const ProblemSpec& problem, const SharedSamples& data,
                std::optional<Smoothness>& known);

}  // namespace gradwire
