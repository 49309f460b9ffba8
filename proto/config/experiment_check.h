// The rules between the keys of an experiment, beyond the range of each key.
#pragma once

#include "proto/config/experiment.pb.h"

namespace gradwire {

// Checks everything that can be checked without data, for an experiment from a peer as well as from a file.
// Throws ConfigError with the wrong key.
void check_experiment(const proto::Experiment& experiment);

}  // namespace gradwire
