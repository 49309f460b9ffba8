// What a server must know of its run to go on with it, beside the state of the algorithm; `metadata` of a
// RunStore.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/experiment_file.h"
#include "fl_server/hub/client_table.h"

namespace gradwire {

struct RunMetadata {
  Experiment asked;      // as the operator gave it, paths absolute
  Experiment resolved;   // step sizes are numbers
  std::string start;     // the Start frame
  ClientTable table{0};  // all joined
};

std::string save_metadata(const RunMetadata& metadata);
Result<RunMetadata> load_metadata(std::string_view bytes);

// A run may go on with another quorum, over-selection, deadline, join deadline, durability, other evaluations
// and more or fewer rounds: those are copied from `now` into about.resolved. Throws ExperimentError that
// names `folder` and the first other key that differs.
void take_settings(const Experiment& now, RunMetadata& metadata, const std::string& folder);

}  // namespace gradwire
