// Optimisers of algorithms with local steps, other than plain gradient steps, for tests of every algorithm.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/core/spec.h"

namespace gradwire::testing {

// Returns the parameters to add. Empty for plain gradient steps.
inline Options optimizer_for(std::string_view algorithm) {
  Options steps = {{"local_steps", "4"}, {"local_step_size", "0.05"}};
  const auto with = [&](Options more) {
    steps.insert(steps.end(), more.begin(), more.end());
    return steps;
  };
  if (algorithm == "fedavg")
    return with(
        {{"local_optimizer", "sgd:momentum=0.9"}, {"local_weight_decay", "0.1"}, {"local_clip_norm", "0.5"}});
  if (algorithm == "fedprox") return with({{"local_optimizer", "microadam:k=3,window=2,block=4"}});
  if (algorithm == "scaffold") return with({{"local_optimizer", "adam"}, {"option", "1"}});
  return {};
}

}  // namespace gradwire::testing
