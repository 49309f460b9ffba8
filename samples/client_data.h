// The samples of one client, from any source that its program has.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/log.h"
#include "config/experiment_spec.h"
#include "engine/problems/problem.h"

namespace gradwire {

struct PartNumber {
  std::uint32_t index = 0;  // 0 .. count-1
  std::uint32_t count = 0;
};

struct ClientData {
  // The client's part of a source that all clients share; the part's index is the client's number. Empty if
  // the client has a source of its own.
  std::optional<PartNumber> part;
  // Loads the samples for the server's experiment. Called again after they were freed. Empty for problems
  // without data. Throws DataError. The text of the error may quote the data, so only this client's own log
  // shows it.
  std::function<ClientDataset(const ExperimentSpec& experiment, const Log& log)> load;
};

}  // namespace gradwire
