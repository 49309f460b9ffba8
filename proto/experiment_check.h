// What must hold between the keys of an experiment, beyond the range of each.
#pragma once

#include "proto/experiment.pb.h"

namespace gradwire {

// Everything that can be checked without data; for an experiment from a peer as much as from a file. Throws
// ConfigError with the key at fault.
void check_experiment(const proto::Experiment& experiment);

}  // namespace gradwire
