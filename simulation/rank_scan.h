// How ranks agree, and how what they compute together goes from one to the next.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>

#include "engine/smoothness/ordered_scan.h"
#include "mpi/ranks.h"

namespace gradwire {

// Thrown where another rank fails, and says why.
struct FailedElsewhere {};

// Collective. Runs `work`; where it throws on a rank, the first such rank throws the same and all others
// FailedElsewhere. `ranks`: null: this is the only process. `work` may be collective itself, by the two
// functions below.
void all_or_none(Ranks* ranks, const std::function<void()>& work);

// Collective, inside all_or_none(): throws FailedElsewhere where the work of another rank has thrown.
void none_has_failed(Ranks* ranks);

// Of the clients of this rank; with its functions inside all_or_none().
OrderedScan ordered_scan_of(Ranks* ranks, std::uint32_t clients);

}  // namespace gradwire
