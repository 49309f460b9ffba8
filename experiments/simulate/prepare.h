// From an experiment file to everything that a run needs and that does not depend on the transport.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/data/source.h"
#include "engine/problems/problem.h"
#include "proto/config/experiment_file.h"

namespace gradwire {

struct Prepared {
  Experiment experiment;  // resolved: step sizes are numbers, paths absolute
  ProblemSpec problem;
  std::vector<Part> parts;  // one per client
  Agreement agreement;
  std::size_t d = 0;
  std::vector<double> x0;                // shape (d)
  std::vector<double> weights;           // shape (n); empty: 1/n each
  Quality quality;                       // of the compressor on R^d
  std::optional<Smoothness> smoothness;  // where they are cheap or needed
  std::vector<std::string> warnings;

  std::uint64_t samples = 0;  // for training, of all clients

  Theory theory() const {
    return {.n = problem.clients,
            .d = d,
            .compressor = quality,
            .smoothness = smoothness ? &*smoothness : nullptr,
            .samples = samples,
            .rounds = experiment.run.rounds,
            .weights = weights,
            .quorum = experiment.server.quorum};
  }
};

// Reads the data and resolves every number. Throws ExperimentError or DataError (one line).
Prepared prepare(const LoadedExperiment& loaded);

}  // namespace gradwire
