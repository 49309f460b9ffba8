// The parts of a run that a program brings, for train() and sweep().
#pragma once

#include "config/experiment_file.h"
#include "gradwire/sweep.h"
#include "gradwire/train.h"
#include "simulation/prepare.h"

namespace gradwire {

struct ProgramParts {
  explicit ProgramParts(const TrainOptions& options);
  explicit ProgramParts(const SweepOptions& options);

  // Returns the keys that say which parts there are.
  KeyValues keys() const;
  // Adds the algorithm and the compressor to an experiment that has these keys. Throws UsageError.
  void add_to(LoadedExperiment& loaded) const;
  // Returns readers that also know the samples.
  Reading reading() const;
  // Returns a text that is different for other functions, samples, start points or names of the algorithm.
  // Empty without any of them.
  std::string hash(const Functions& functions, const std::vector<double>& x0) const;

  ByValue<UserAlgorithm> algorithm;
  ByValue<UserCompressor> compressor;
  std::optional<Data> data, test;
};

// Returns the functions of the program. Throws UsageError for a list that cannot be run.
Functions functions_of(const Oracles& oracles);

// Throws UsageError unless L_i has a number for each of the program's functions, or none.
void check_smoothness(const std::vector<double>& L_i, const Functions& functions,
                      const Experiment& experiment);

}  // namespace gradwire
