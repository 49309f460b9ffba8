// A simulation that ranks share: what they do together, and what is refused.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "mpi/ranks.h"
#include "simulation/checkpoint.h"
#include "simulation/prepare.h"
#include "simulation/rank_scan.h"

namespace gradwire {

// Thrown where one rank has left the others in the middle of what all do: nothing but the end of the job
// helps.
struct LostStep {
  std::string what;
};

// Throws UsageError, one line, when ranks cannot share this run.
void check_for_ranks(const Prepared& prepared);

// Collective. Throws UsageError on the first rank whose text is not that of rank 0, FailedElsewhere on all
// others.
void check_same_run(Ranks& ranks, const std::string& text);

// Collective; `mine` of rank 0 counts. All get its sections but the states of clients, which stay there.
RunCheckpoint::Saved share_saved(Ranks& ranks, RunCheckpoint::Saved mine);
// Collective: gives each rank the states of its clients. `saved` of rank 0 counts: of all clients.
std::string hand_out_clients(Ranks& ranks, std::uint32_t clients, std::string_view saved);
// Collective. At rank 0: the texts of all ranks, one after the other; elsewhere empty.
std::string join_at_first(Ranks& ranks, std::string_view mine);

}  // namespace gradwire
