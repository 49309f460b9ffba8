// From an experiment file to everything that a run needs and that does not depend on the transport.
#pragma once

#include <vector>

#include "cluster/ranks.h"
#include "engine/data/source.h"
#include "proto/config/client_seconds.h"
#include "proto/config/experiment_file.h"
#include "proto/config/run_plan.h"

namespace gradwire {

// The plan of a run whose data are at hand.
struct Prepared : RunPlan {
  ProblemSpec problem;
  SharedSamples data;
  ClientSeconds seconds;  // of clients.seconds, with what its file holds
};

// Reads the data and resolves every number. Throws ExperimentError or DataError (one line). With `ranks`
// collective, and to be called in all_or_none(): each rank reads the samples of its clients, and all get the
// same numbers.
Prepared prepare(const LoadedExperiment& loaded, Ranks* ranks = nullptr);

}  // namespace gradwire
