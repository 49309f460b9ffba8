// The content of an Experiment, and the errors of experiments as programs see them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/experiment_file.h"
#include "gradwire/experiment.h"

namespace gradwire {

struct ExperimentContent {
  LoadedExperiment loaded;
  std::string text;                    // of a file; empty for an experiment from keys alone
  std::vector<std::string> overrides;  // as for --set
};

// Calls f(). Errors about keys that a program gave, and about missing keys of an experiment without a file,
// then begin with the key, and not with the option of a command or a place in a file. `file` is the name of a
// text that the library wrote: its lines mean nothing to the program.
template <class F>
auto with_errors_of_keys(F&& f, const std::string& file = "") {
  try {
    return f();
  } catch (const ExperimentError& error) {
    throw ExperimentError(without_place(error.what(), file));
  }
}

}  // namespace gradwire
