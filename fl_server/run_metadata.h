// The facts that a server needs to resume its run, in addition to the state of the algorithm. A RunStore
// holds them as `metadata`.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/experiment_file.h"
#include "engine/data/normalize.h"
#include "fl_server/sessions/client_table.h"

namespace gradwire {

struct RunMetadata {
  ExperimentSpec asked;     // as the operator gave it, with absolute paths
  ExperimentSpec resolved;  // step sizes are numbers
  std::string start;        // the Start frame
  ClientTable table{0};     // all n clients, of which some may not have joined yet
  // The map of the features, from the sums of all clients. Null if the experiment needs none.
  std::shared_ptr<const Normalization> normalization = nullptr;
};

std::string save_metadata(const RunMetadata& metadata);
Result<RunMetadata> load_metadata(std::string_view bytes);

// Converts a client that joins after the start to a record and back. read_late_join() adds it to the table,
// and returns false if the record cannot be read.
std::string write_late_join(ClientId client, const ClientInfo& info, bool by_part);
bool read_late_join(std::string_view record, ClientTable& table);

// Returns what problem.normalize says, or kNone if the problem has no rows.
Normalize normalize_of(const ExperimentSpec& experiment);

// Throws ExperimentError, which names `folder`, if the experiment needs a map of the features but an earlier
// release, whose clients computed maps of their own, saved the run without one.
void require_map(const RunMetadata& metadata, const std::string& folder);

// Applies changed settings to a resumed run. Quorum, over-selection, deadline, join deadline, durability,
// evaluations and the number of rounds may change; they are copied from `now` into the metadata. Throws
// ExperimentError, which names `folder` and the first other key that differs.
void take_settings(const ExperimentSpec& now, RunMetadata& metadata, const std::string& folder);

}  // namespace gradwire
