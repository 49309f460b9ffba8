// Simulations whose clients are spread over ranks: collective steps and checks.
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

// Thrown if one rank fails in the middle of a collective step. The job must then end.
struct LostStep {
  std::string what;
};

// Throws UsageError (one line) if ranks cannot share this run.
void check_for_ranks(const Prepared& prepared);

// Collective. Throws UsageError on the first rank whose text differs from that of rank 0, and FailedElsewhere
// on all others.
void check_same_run(Ranks& ranks, const std::string& text);

// Collective. Shares the saved sections of rank 0 with all ranks, except the states of clients.
RunCheckpoint::Saved share_saved(Ranks& ranks, RunCheckpoint::Saved mine);
// Collective. Returns the states of this rank's clients. Only rank 0's `saved` is used; it has the states of
// all clients.
std::string hand_out_clients(Ranks& ranks, std::uint32_t clients, std::string_view saved);
// Collective. Returns the texts of all ranks in the order of ranks at rank 0, and an empty string elsewhere.
std::string join_at_first(Ranks& ranks, std::string_view mine);

}  // namespace gradwire
