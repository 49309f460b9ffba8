// The content of an Experiment, and the errors of experiments as programs see them.
#pragma once

#include <string>
#include <string_view>
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
// then begin with the key, and not with the option of a command or a place in a file.
template <class F>
auto with_errors_of_keys(F&& f) {
  try {
    return f();
  } catch (const ExperimentError& error) {
    std::string_view text = error.what();
    for (const std::string_view place : {"--set ", ":1: "})
      if (text.starts_with(place)) text.remove_prefix(place.size());
    throw ExperimentError(std::string(text));
  }
}

}  // namespace gradwire
