// Agreement between ranks, and scans that pass a state from one rank to the next.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>

#include "engine/smoothness/ordered_scan.h"
#include "mpi/ranks.h"

namespace gradwire {

// Thrown on a rank if another one fails and reports the error.
struct FailedElsewhere {};

// Collective. Runs `work`. If it throws on some ranks, the lowest of them throws the same exception, and all
// other ranks throw FailedElsewhere. If `ranks` is null, this is the only process. `work` may itself be
// collective, through the two functions below.
void all_or_none(Ranks* ranks, const std::function<void()>& work);

// Collective, inside all_or_none(). Throws FailedElsewhere if the work of another rank has thrown.
void none_has_failed(Ranks* ranks);

// Returns the scan over the clients of this rank. REQUIRES: its functions are called inside all_or_none().
OrderedScan ordered_scan_of(Ranks* ranks, std::uint32_t clients);

}  // namespace gradwire
