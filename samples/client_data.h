// What a client computes on: its own samples, from wherever its program has them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/log.h"
#include "config/experiment.h"
#include "engine/problems/problem.h"

namespace gradwire {

struct PartNumber {
  std::uint32_t index = 0;  // 0 .. count-1
  std::uint32_t count = 0;
};

struct ClientData {
  // The samples are this part of a source that all clients share, and the client has its number; absent: they
  // are its own.
  std::optional<PartNumber> part;
  // The samples for the experiment of the server; called again after they were freed. Empty: for problems
  // without data. Throws DataError; its text may quote the data, so only this client's own log shows it.
  std::function<ClientDataset(const Experiment& experiment, const Log& log)> load;
};

}  // namespace gradwire
